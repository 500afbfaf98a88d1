"""What is given to spark-submit: the `anabranch` command, e.g. `spark-submit … job.py run queries.sql`."""

from anabranch.cli import main

main()
