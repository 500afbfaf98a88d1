"""What can be told of clusters without one: what is sent to executors, and what is refused before."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from anabranch import Session
from anabranch.engine import cluster, shipping, workers
from anabranch.errors import RunError, SettingsError
from anabranch.observe.running import _spark_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def test_a_sent_package_is_known_as_the_driver_s(tmp_path: Path) -> None:
    made = shipping.write_package(tmp_path)
    told = "import anabranch.engine.shipping as s; print(s.__file__, s.package_digest())"
    # Neither the folder of the source nor what is installed
    bare = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(made)!r}); {told}",
    ]
    done = subprocess.run(bare, capture_output=True, text=True, check=True, cwd=tmp_path)
    where, digest = done.stdout.split()
    assert where.startswith(str(made))
    assert where.endswith(".pyc")
    assert digest == shipping.package_digest()


def test_libraries_are_those_a_task_needs() -> None:
    names = {distribution.name.lower() for distribution in shipping.needed()}
    assert {"polars", "pyarrow", "py4j", "obstore", "pyiceberg-core"} <= names
    assert not names & {"pytest", "mypy", "duckdb", "anabranch"}
    files = [name for _, name in shipping._libraries()]
    assert "pyspark/worker.py" in files
    assert not [name for name in files if name.startswith("pyspark/jars")]


def test_an_archive_has_the_package_and_its_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "library.py"
    library.write_text("")
    monkeypatch.setattr(shipping, "_libraries", lambda: [(library, "library/__init__.py")])
    made = Session.package(tmp_path / "libraries.tar.gz")
    with tarfile.open(made) as packed:
        names = packed.getnames()
    assert {"anabranch/engine/site.py", "library/__init__.py"} <= {*names}
    with pytest.raises(SettingsError, match=r"NAME\.tar\.gz"):
        Session.package(tmp_path / "libraries.zip")
    with pytest.raises(SettingsError, match="Cannot write"):
        Session.package(tmp_path / "nowhere" / "libraries.tar.gz")


@pytest.mark.parametrize("master", ["", "spark:7077", "mesos://a", "host:7077"])
def test_masters_that_do_not_exist_are_refused(master: str) -> None:
    with pytest.raises(SettingsError, match="There is no master"):
        Session.cluster(master)


def test_a_master_beside_that_of_spark_submit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    with pytest.raises(SettingsError, match="spark-submit has chosen the master"):
        Session.cluster("spark://a:7077")


def test_spark_connect_is_refused_with_the_reason() -> None:
    remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    for start in (lambda: Session(remote), lambda: Session.cluster("sc://a:15002")):
        with pytest.raises(SettingsError, match=r"Spark Connect: .* needs the SparkContext"):
            start()


def test_settings_of_spark_are_taken_as_spark_takes_them() -> None:
    given = ["spark.executor.memory=2g", "spark.executorEnv.A=b=c"]
    assert _spark_settings(given) == {"spark.executor.memory": "2g", "spark.executorEnv.A": "b=c"}
    for wrong in ("memory=2g", "spark.executor.memory"):
        with pytest.raises(SettingsError, match=r"expected spark\.NAME=VALUE"):
            _spark_settings([wrong])


def test_a_worker_with_another_version_says_so() -> None:
    workers.require_alike(workers.versions())
    with pytest.raises(RunError, match=r"has polars .*, the driver 0\.1\. Install the same"):
        workers.require_alike({**workers.versions(), "polars": "0.1"})


def test_loopback_is_for_clusters_on_loopback() -> None:
    assert cluster._addresses("spark://127.0.0.1:7077")
    assert cluster._addresses("spark://localhost:7077")
    for master in (
        "spark://10.0.0.1:7077",
        "spark://a,b:7077",
        "yarn",
        "k8s://https://127.0.0.1:6443",
    ):
        assert cluster._addresses(master) == {}


def test_manifests_for_kubernetes_are_of_one_piece() -> None:
    """As far as that can be told without a cluster: names that refer to each other, and files that exist."""
    documents = [
        one
        for path in sorted((DEPLOY / "kubernetes").glob("*.yml"))
        for one in yaml.safe_load_all(path.read_text())
    ]
    kinds = {(one["kind"], one["metadata"]["name"]): one for one in documents}
    assert all(one["apiVersion"] for one in documents)
    job = next(one for (kind, _), one in kinds.items() if kind == "Job")["spec"]["template"]["spec"]
    assert ("ServiceAccount", job["serviceAccountName"]) in kinds
    claims = {volume.get("persistentVolumeClaim", {}).get("claimName") for volume in job["volumes"]}
    maps = {volume.get("configMap", {}).get("name") for volume in job["volumes"]}
    assert all(("PersistentVolumeClaim", name) in kinds for name in claims - {None})
    assert all(("ConfigMap", name) in kinds for name in maps - {None})
    binding = next(one for (kind, _), one in kinds.items() if kind == "RoleBinding")
    assert ("Role", binding["roleRef"]["name"]) in kinds
    (container,) = job["containers"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in job["volumes"]}
    service = next(one for (kind, _), one in kinds.items() if kind == "Service")
    words = " ".join(container["args"])
    assert f"spark.driver.host={service['metadata']['name']}." in words
    assert re.search(r"k8s://https://kubernetes\.default\.svc", words)
    image = re.search(r"spark\.kubernetes\.container\.image=(\S+)", words)
    assert image
    assert image.group(1) == container["image"]
    assert "/opt/anabranch/job.py" in words
    assert "COPY deploy/job.py /opt/anabranch/job.py" in (DEPLOY / "Containerfile").read_text()


def test_the_container_copies_what_exists() -> None:
    for line in (DEPLOY / "Containerfile").read_text().splitlines():
        if line.startswith("COPY "):
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), line
