"""What is asked and what is hidden: domains, policy graphs, public facts, policies, queries, losses."""
