"""tau2-bench's domain `telecom`, in which the customer has tools too: those of a phone.

`crm` has the agent's tools and `phone` the customer's, which read and change one database;
`scenario` sets it up for a task, and says whether the task's assertions hold.
"""
