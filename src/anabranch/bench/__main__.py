"""`python -m anabranch.bench aggregate --json`: the benchmarks without the rest of the command line."""

from anabranch.bench.cli import app

if __name__ == "__main__":
    app(prog_name="anabranch bench")
