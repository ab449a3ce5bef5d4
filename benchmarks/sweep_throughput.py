"""Runs per minute of the demo grid: `lcat sweep` against GraphGym's own flow, which starts a process for every run.

    python benchmarks/sweep_throughput.py [--degrees 2 16 64] [--seeds 1]

Both train the same settings with the same layers on the same number of cores, one thread per process. The second flow
is that of GraphGym's ``run_batch.sh``: ``python main.py --cfg FILE`` with PyG's Lightning loop, one process per core. Wall
time is measured from the command to the last result, imports included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

STOCK_MAIN = Path(__file__).with_name("sweep_stock_main.py")


def sweep(folder: Path, degrees: list[int], seeds: int, cores: int) -> tuple[int, float]:
    """Return how many runs `lcat sweep demo` executed, and how many seconds it took."""
    only = [f"dataset.label=degree {degree}" for degree in degrees]
    command = [sys.executable, "-m", "lcat_run.cli", "sweep", "demo", "out_dir", str(folder), "seeds", str(seeds)]
    command += ["-j", str(cores), "--threads", "1", "--only", ",".join(only)]
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    seconds = time.perf_counter() - started
    return len(list((folder / "demo" / "runs").glob("*/result.json"))), seconds


def stock_configs(results: Path, folder: Path) -> list[Path]:
    """Write the same settings as files that a stock main reads; it has no `run_dir` before it sets one."""
    folder.mkdir()
    configs = []
    for path in sorted(results.glob("demo/runs/*/config.yaml")):
        settings = yaml.safe_load(path.read_text())
        settings.pop("run_dir", None)
        configs.append(folder / f"{path.parent.name}.yaml")
        configs[-1].write_text(yaml.safe_dump(settings))
    return configs


def one_process_per_run(configs: list[Path], folder: Path, cores: int) -> float:
    """Return the seconds that GraphGym's flow takes for the same runs."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def train(config: Path) -> None:
        out_dir = folder / config.stem
        command = [sys.executable, str(STOCK_MAIN), "--cfg", str(config), "out_dir", str(out_dir)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise SystemExit(f"GraphGym's flow failed:\n{done.stderr[-2000:]}")

    started = time.perf_counter()
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(train, configs))
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--degrees", type=int, nargs="+", default=[2, 16, 64])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lcat-benchmark-") as scratch:
        folder = Path(scratch)
        runs, ours = sweep(folder / "ours", args.degrees, args.seeds, args.cores)
        configs = stock_configs(folder / "ours", folder / "configs")
        stock = one_process_per_run(configs, folder / "stock", args.cores)
    figures = {
        "runs": runs,
        "cores": args.cores,
        "lcat sweep, runs/min": round(60 * runs / ours, 1),
        "one process per run, runs/min": round(60 * runs / stock, 1),
        "ratio": round(stock / ours, 2),
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
