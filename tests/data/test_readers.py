"""Files become the arrays that they hold, or an error that says what is wrong and where."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from fenchel.data.readers import FORMATS, batches, read
from fenchel.data.readers.svmlight import read_svmlight

Write = Callable[..., Path]

AWKWARD = b"# made by hand\r\n+1 qid:3 1:0.5 4:-2e-3 # the first\r\n\n   \t\n-1\t2:+7\t3:.25#tight\n-1\n1e0 1:1"
AWKWARD_X = np.array([[0.5, 0, 0, -2e-3], [0, 7, 0.25, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
AWKWARD_Y = np.array([1.0, -1, -1, 1])


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: bytes | str, name: str = "data.svm") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def parse(text: bytes, **options: Any) -> tuple[Any, Any]:
    options = {"dtype": np.dtype(np.float64), "n_features": None} | options
    return read_svmlight(io.BytesIO(text), **options)


def random_svmlight(zero_based: bool) -> bytes:
    rng = np.random.default_rng(0)
    X = sparse.random(60, 35, 0.2, format="csr", random_state=1)
    X.data = rng.standard_normal(X.nnz) * 10.0 ** rng.integers(-200, 200, X.nnz)
    stream = io.BytesIO()
    dump_svmlight_file(X, rng.integers(-5, 5, 60), stream, zero_based=zero_based)
    return stream.getvalue()


def assert_same(X: Any, expected: Any) -> None:
    assert isinstance(X, sparse.csr_array)
    assert X.shape == expected.shape
    np.testing.assert_array_equal(X.indptr, expected.indptr)
    np.testing.assert_array_equal(X.indices, expected.indices)
    np.testing.assert_array_equal(X.data, expected.data)


# svmlight


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("zero_based", [True, False, "auto"])
def test_svmlight_gives_what_scikit_learn_reads(write: Write, zero_based: Any, dtype: Any) -> None:
    path = write(random_svmlight(zero_based is True))
    if dtype == np.float32:
        path.write_bytes(re.sub(rb"e[+-]\d+", b"", path.read_bytes()))
    expected, labels = load_svmlight_file(path, dtype=dtype, zero_based=zero_based, n_features=40)
    X, y = read(path, dtype=dtype, zero_based=zero_based, n_features=40)
    assert_same(X, expected)
    assert X.dtype == dtype
    np.testing.assert_array_equal(y, labels)


@given(
    X=arrays(np.float64, (5, 4), elements=st.floats(-1e308, 1e308) | st.just(0.0)),
    y=arrays(np.float64, 5, elements=st.floats(-1e308, 1e308)),
    zero_based=st.booleans(),
    chunk_bytes=st.integers(1, 100),
)
def test_svmlight_gives_what_scikit_learn_wrote_for_any_numbers_and_chunks(
    X: Any, y: Any, zero_based: bool, chunk_bytes: int
) -> None:
    stream = io.BytesIO()
    dump_svmlight_file(X, y, stream, zero_based=zero_based)
    stream.seek(0)
    expected, labels = load_svmlight_file(stream, n_features=4, zero_based=zero_based)
    got, got_labels = parse(stream.getvalue(), n_features=4, zero_based=zero_based, chunk_bytes=chunk_bytes)
    assert_same(got, expected)
    np.testing.assert_array_equal(got_labels, labels)


@pytest.mark.parametrize("chunk_bytes", [1, 2, 3, 5, 7, 11, 64, 10**6])
def test_chunks_may_end_anywhere(chunk_bytes: int) -> None:
    X, y = parse(AWKWARD, chunk_bytes=chunk_bytes)
    np.testing.assert_array_equal(X.toarray(), AWKWARD_X)
    np.testing.assert_array_equal(y, AWKWARD_Y)


@pytest.mark.parametrize("chunk_bytes", [1, 9, 10**6])
def test_malformed_line_is_counted_from_the_start_of_the_file(chunk_bytes: int) -> None:
    with pytest.raises(ValueError, match=r"^line 4 has 'x:1' where index:value was expected$"):
        parse(b"1 1:1\n# a comment\n\n1 1:2 x:1\n", chunk_bytes=chunk_bytes)


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_compressed_files_are_read_as_they_are(write: Write, suffix: str, compress: Any) -> None:
    X, y = read(write(compress(AWKWARD), f"data.libsvm{suffix}"))
    read(write(compress(AWKWARD), f"DATA.SVM{suffix.upper()}"))
    np.testing.assert_array_equal(X.toarray(), AWKWARD_X)
    np.testing.assert_array_equal(y, AWKWARD_Y)


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"nothing like it"])
def test_damaged_compression_names_the_file(write: Write, suffix: str, compress: Any, damage: Any) -> None:
    path = write(damage(compress(random_svmlight(False))), f"data.svm{suffix}")
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2 1:3", "line 1 has several labels, '1,2'"),
        ("1:3 2:1", "line 1 has no label before '1:3'"),
        ("yes 1:3", "line 1 starts with 'yes', which is not a number"),
        ("1 3", "line 1 has '3' where index:value"),
        ("1 3:", "line 1 has '3:' where index:value"),
        ("1 :3", "line 1 has ':3' where index:value"),
        ("1 -3:1", "line 1 has '-3:1' where index:value"),
        ("1 3:1x", "line 1 has '3:1x' where index:value"),
        ("1 3:+-1", r"line 1 has '3:\+-1' where index:value"),
        ("1 3:1:1", "line 1 has '3:1:1' where index:value"),
        ("1 3 :1", "line 1 has '3' where index:value"),
        ("1 9223372036854775808:1", "line 1 has '9223372036854775808:1' where index:value"),
        ("1 99999999999999999999999999:1", "where index:value"),
        ("1 qid:x 3:1", "line 1 has 'qid:x' where qid:N"),
        ("1 3:1 qid:2", "line 1 has 'qid:2' where index:value"),
        ("1 \u00e9:1", r"line 1 has '\\xc3\\xa9:1'"),
        ("1 " + "z" * 1000, "line 1 has 'z{40}...'"),
        ("1 1:1\n\n1 2:nan", "line 3: feature 2 is nan, not a finite float64"),
        ("1 1:1\n1 2:3 7:-inf", "line 2: feature 7 is -inf"),
        ("1 1:1\n1 2:1e999", "line 2: feature 2 is inf"),
        ("1 1:1\n# c\nnan 1:2", "line 3: the label is nan"),
        ("# nothing\n\n", "there are no samples"),
        ("1\n2\n", "pass n_features"),
    ],
)
def test_malformed_svmlight_says_what_and_where(write: Write, text: str, message: str) -> None:
    path = write(text)
    with pytest.raises(ValueError, match=re.escape(str(path)) + ": .*" + message):
        read(path)


def test_number_too_large_for_float32_is_an_error(write: Write) -> None:
    path = write("1 1:1\n1 2:1e39\n")
    with pytest.raises(ValueError, match=r"line 2: feature 2 is 1e\+39, not a finite float32"):
        read(path, dtype=np.float32)
    assert read(path)[0][1, 1] == 1e39


@pytest.mark.parametrize("number", ["1e-999", "0." + "0" * 400 + "1", "1e-99999999999999999999"])
def test_number_too_small_for_a_double_is_zero(number: str) -> None:
    X, _ = parse(f"1 1:{number} 2:-{number}".encode())
    np.testing.assert_array_equal(X.data, [0.0, 0.0])
    np.testing.assert_array_equal(np.signbit(X.data), [False, True])


@pytest.mark.parametrize("number", ["1e999", "1" + "0" * 400, "0.001e999", "1e99999999999999999999"])
def test_number_too_large_for_a_double_is_reported_as_infinite(number: str) -> None:
    with pytest.raises(ValueError, match="feature 1 is -inf"):
        parse(f"1 1:-{number}".encode())


def test_zero_based_auto_takes_indices_to_count_from_1_unless_a_0_occurs() -> None:
    assert parse(b"1 1:1 3:1")[0].shape == (1, 3)
    assert parse(b"1 0:1 3:1")[0].shape == (1, 4)
    assert parse(b"1 1:1 3:1", zero_based=True)[0].shape == (1, 4)
    assert parse(b"1 3:1\n1 0:1", chunk_bytes=4)[0].indices.tolist() == [3, 0]


def test_index_0_in_a_file_declared_one_based_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 2: feature 0 counts from 0, but zero_based=False"):
        parse(b"1 1:1\n1 2:1 0:1\n", zero_based=False)


@pytest.mark.parametrize(("zero_based", "most"), [(True, 5), (False, 4)])
def test_n_features_widens_but_never_truncates(zero_based: bool, most: int) -> None:
    text = b"1 4:1\n"
    assert parse(text, zero_based=zero_based, n_features=9)[0].shape == (1, 9)
    assert parse(text, zero_based=zero_based, n_features=most)[0].shape == (1, most)
    with pytest.raises(ValueError, match=f"index 4 is beyond n_features={most - 1}"):
        parse(text, zero_based=zero_based, n_features=most - 1)


def test_indices_are_32_bits_wide_until_one_is_larger() -> None:
    assert parse(b"1 1:1 2147483647:1")[0].indices.dtype == np.int32
    X, _ = parse(b"1 1:1\n1 5000000000:1\n", chunk_bytes=6)
    assert X.indices.dtype == X.indptr.dtype == np.int64
    assert X.shape == (2, 5_000_000_000)
    assert X.indices.tolist() == [0, 4_999_999_999]


def test_rows_without_entries_and_files_without_a_last_newline_are_kept() -> None:
    X, y = parse(b"1\n2\n3", n_features=2)
    assert X.shape == (3, 2)
    np.testing.assert_array_equal(y, [1, 2, 3])


def test_unsorted_and_repeated_indices_are_handed_on() -> None:
    X, _ = parse(b"1 3:1 1:2 3:4")
    assert X.indices.tolist() == [2, 0, 2]
    assert X.toarray().tolist() == [[2, 0, 5]]


# csv


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("header", [True, False])
def test_csv_round_trip(write: Write, delimiter: str, header: bool) -> None:
    table = np.random.default_rng(0).standard_normal((9000, 4))
    lines = [delimiter.join(map(repr, row.tolist())) for row in table]
    path = write("\n".join([delimiter.join("abcd"), *lines] if header else lines), "data.csv")
    X, y = read(path)
    np.testing.assert_array_equal(X, table[:, :3])
    np.testing.assert_array_equal(y, table[:, 3])
    assert X.flags.c_contiguous
    assert read(path, dtype=np.float32)[0].dtype == np.float32


@pytest.mark.parametrize("target", ["b", 1, -2])
def test_csv_target_by_name_or_position(write: Write, target: Any) -> None:
    X, y = read(write("a,b,c\n1,2,3\n4,5,6\n", "data.csv"), target=target)
    np.testing.assert_array_equal(X, [[1, 3], [4, 6]])
    np.testing.assert_array_equal(y, [2, 5])


def test_csv_without_a_target(write: Write) -> None:
    X, y = read(write("a,b\n1,2\n", "data.csv"), target=False)
    np.testing.assert_array_equal(X, [[1, 2]])
    assert y is None


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,other\n", ["setosa", "other"]),  # no header: the first line has numbers
        ("p,q,kind\n5.1,3.5,setosa\n4.9,3.0,other\n", ["setosa", "other"]),
        ('p,q,kind\n5.1,3.5,"a, b"\n\n4.9,3.0," c"\n', ["a, b", "c"]),
        ("p,q,kind\r\n5.1,3.5,NA\r\n4.9,3.0,DE\r\n", ["NA", "DE"]),  # among text, NA is a label
        ("\ufeffp,q,kind\n5.1,3.5,1\n4.9,3.0,two\n", ["1", "two"]),
    ],
)
def test_csv_target_may_be_text(write: Write, text: str, labels: list[str]) -> None:
    X, y = read(write(text, "data.csv"))
    np.testing.assert_array_equal(X, [[5.1, 3.5], [4.9, 3.0]])
    assert y is not None
    assert y.tolist() == labels


def test_csv_header_of_numbers_is_known_by_the_text_among_them(write: Write) -> None:
    X, y = read(write("0,1,target\n0.5,0.25,3\n", "data.csv"))
    np.testing.assert_array_equal(X, [[0.5, 0.25]])
    np.testing.assert_array_equal(y, [3])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,city,y\n1,2,0\n1,Paris,0\n", {}, "line 3, column 'city' is text, 'Paris': encode it as numbers"),
        ("M,0.5,15\nF,0.5,7\n", {}, "line 1, column 1 is text, 'M'"),
        ("a,b,y\n1,1_000,0\n", {}, "line 2, column 'b' is text, '1_000'"),
        ("a,b,y\n1,,0\n", {}, "line 2, column 'b' is empty"),
        ("1,,0\n1,2,0\n", {}, "line 1, column 2 is empty"),
        ("1,NA,0\n1,2,0\n", {}, "line 1, column 2 is missing, 'NA'"),
        ("a,b,y\n1,nan,0\n", {}, "line 2, column 'b' is nan"),
        ("a,b,y\n1,2,0\n3,inf,0\n", {}, "line 3, column 'b' is inf"),
        ("a,b,y\n1,1e39,0\n", {"dtype": np.float32}, "line 2, column 'b' is 1e\\+39, not a finite float32"),
        ("a,b,y\n1,2,0\n\n1,2\n", {}, "line 4 has 2 cells, but the first line has 3"),
        ("a,b,y\n1,2,\n", {}, "line 2: the target is empty"),
        ("a,b,y\n1,2,3\n1,2,NA\n", {}, "line 3: the target is missing, 'NA'"),
        ("a,b,y\n1,2,3\n1,2,inf\n", {}, "the target of sample 1 .* is inf"),
        ("a,b,y\n", {}, "there is a header, but there are no samples"),
        ("\n\n", {}, "there are no samples"),
        ("a b y\n1 2 3\n", {}, "only one; columns are separated by a comma, semicolon or tab"),
        ('a,b,y\n1,"2"3,0\n', {}, "line 2: "),
        ("a,b,y\n1,2,0\n", {"target": "z"}, "target 'z' is not a column; there are 'a', 'b', 'y'"),
        ("a,a,y\n1,2,0\n", {"target": "a"}, "target 'a' is the name of several columns"),
        ("a,b,y\n1,2,0\n", {"target": 3}, "target=3 is not one of the 3 columns"),
        ("a,b,y\n1,2,0\n", {"target": True}, "target=True is not one of the 3 columns"),
        ("a,b,y\n1,2,0\n", {"n_features": 3}, "there are 2 features, but n_features=3"),
    ],
)
def test_malformed_csv_says_what_and_where(write: Write, text: str, options: Any, message: str) -> None:
    path = write(text, "data.csv")
    with pytest.raises(ValueError, match=re.escape(str(path)) + ": .*" + message):
        read(path, **options)


def test_csv_that_is_not_utf8_is_an_error(write: Write) -> None:
    path = write(b"a,b\n1,\xff\n", "data.csv")
    with pytest.raises(ValueError, match="utf-8"):
        read(path)


def test_compressed_csv(write: Write) -> None:
    X, _ = read(write(gzip.compress(b"a\tb\n1\t2\n"), "data.tsv.gz"))
    np.testing.assert_array_equal(X, [[1]])


# npz


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("make", [sparse.random_array, sparse.random])
def test_saved_sparse_matrix_comes_back_as_csr(tmp_path: Path, kind: str, make: Any) -> None:
    shape = ((20, 10),) if make is sparse.random_array else (20, 10)
    saved = make(*shape, density=0.3).asformat(kind)
    sparse.save_npz(tmp_path / "data.npz", saved)
    X, y = read(tmp_path / "data.npz")
    assert isinstance(X, sparse.csr_array)
    np.testing.assert_array_equal(X.toarray(), saved.toarray())
    assert y is None


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
def test_archive_of_dense_arrays(tmp_path: Path, dtype: Any, order: Any) -> None:
    saved = np.asarray(np.random.default_rng(0).integers(0, 2, (6, 3)), dtype=dtype, order=order)
    np.savez(tmp_path / "data.npz", X=saved, y=np.array(list("abcabc")))
    X, y = read(tmp_path / "data.npz")
    assert X.dtype == np.float64
    assert isinstance(X, np.ndarray)
    assert X.flags.c_contiguous
    np.testing.assert_array_equal(X, saved)
    assert y is not None
    assert "".join(y) == "abcabc"


def test_archive_of_csr_parts(tmp_path: Path) -> None:
    saved = sparse.random_array((6, 3), density=0.5, format="csr")
    parts = {"data": saved.data, "indices": saved.indices, "indptr": saved.indptr, "shape": saved.shape}
    np.savez_compressed(tmp_path / "data.npz", y=np.arange(6), **parts)
    X, y = read(tmp_path / "data.npz", dtype=np.float32, n_features=3)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X.toarray(), saved.toarray().astype(np.float32))
    np.testing.assert_array_equal(y, np.arange(6))


CSR = {
    "data": np.ones(2),
    "indices": np.array([0, 1]),
    "indptr": np.array([0, 1, 2]),
    "shape": np.array([2, 2]),
}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"A": np.eye(2)}, "the archive holds A; expected X"),
        ({"X": np.arange(3.0)}, r"X should be a matrix of numbers, but is float64 of shape \(3,\)"),
        ({"X": np.array([["a"]])}, "X should be a matrix of numbers"),
        ({"X": np.eye(2) * 1j}, "X should be a matrix of numbers"),
        ({"X": np.array([[1, 2], [3, np.nan]])}, r"X\[1, 1\] is nan"),
        ({"X": np.array([[{}]], dtype=object)}, "allow_pickle=False"),
        ({"X": np.empty((0, 2))}, "there are no samples"),
        ({"X": np.eye(2), "y": np.arange(3)}, r"y has shape \(3,\), but X has 2 samples"),
        ({"X": np.eye(2), "y": np.array([1, np.inf])}, "target of sample 1 .* is inf"),
        ({"X": np.eye(2), "y": np.array([1, 2j])}, "neither numbers nor text labels"),
        ({**CSR, "data": np.array([1, np.inf])}, r"X\[1, 1\] is inf"),
        ({**CSR, "data": np.array(["a", "b"])}, "not numbers|data"),
        ({**CSR, "indices": np.array([0, 7])}, "ind"),
        ({**CSR, "indices": np.array([0, -1])}, "ind"),
        ({**CSR, "indices": np.array([0.0, 1.0])}, "indices holds float64, not whole numbers"),
        ({**CSR, "indptr": np.array([0, 2, 1])}, "ind"),
    ],
)
def test_malformed_archive_says_what(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, **content)
    with pytest.raises(ValueError, match=re.escape(str(path)) + ": .*" + message):
        read(path)


def test_something_else_named_npz_is_an_error(write: Write) -> None:
    with pytest.raises(ValueError, match="not an npz archive"):
        read(write("1 2:3", "data.npz"))


# parquet


def write_parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), path, **options)
    return path


def test_parquet_round_trip(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).standard_normal(1000)
    columns = {"a": numbers, "flag": numbers > 0, "whole": np.arange(1000), "y": np.arange(1000) % 3}
    path = write_parquet(tmp_path / "data.parquet", columns, row_group_size=300)
    X, y = read(path)
    np.testing.assert_array_equal(X, np.column_stack([numbers, numbers > 0, np.arange(1000)]))
    np.testing.assert_array_equal(y, np.arange(1000) % 3)
    assert isinstance(X, np.ndarray)
    assert X.flags.c_contiguous
    X, y = read(path, target=False, dtype=np.float32, n_features=4)
    assert X.shape == (1000, 4)
    assert X.dtype == np.float32
    assert y is None


def test_parquet_target_may_be_text_or_categories(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    text = arrow.array(["no", "yes", "no"])
    for column in (text, text.dictionary_encode(), text.cast(arrow.large_string())):
        path = write_parquet(tmp_path / "data.parquet", {"y": column, "a": [1.0, 2.0, 3.0]})
        X, y = read(path, target="y")
        assert X.tolist() == [[1], [2], [3]]
        assert y is not None
        assert y.tolist() == ["no", "yes", "no"]


def test_index_that_pandas_stored_is_no_feature(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"a": [1.0, 2.0], "y": [3, 4]}, index=[7, 9]).to_parquet(tmp_path / "data.parquet")
    X, y = read(tmp_path / "data.parquet")
    assert X.tolist() == [[1], [2]]
    np.testing.assert_array_equal(y, [3, 4])


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"a": ["x", "y"], "y": [1, 2]}, {}, "column 'a' holds string: encode it as numbers"),
        ({"a": [1.0, None], "y": [1, 2]}, {}, r"row 1 \(counting from 0\), column 'a' is missing"),
        ({"a": [1.0, np.inf], "y": [1, 2]}, {}, r"row 1 \(counting from 0\), column 'a' is inf"),
        ({"a": [1.0, 2.0], "y": [None, 2]}, {}, r"row 0 \(counting from 0\), column 'y' is missing"),
        ({"a": [1.0, 2.0], "y": [1, 2]}, {"target": "z"}, "target 'z' is not a column"),
        ({"a": [1.0, 2.0], "y": [1, 2]}, {"n_features": 2}, "there are 1 features, but n_features=2"),
        ({"y": [1, 2]}, {}, "no column besides the target"),
        ({"a": np.empty(0), "y": np.empty(0)}, {}, "there are no samples"),
    ],
)
def test_malformed_parquet_says_what_and_where(tmp_path: Path, columns: Any, options: Any, message: str) -> None:
    path = write_parquet(tmp_path / "data.pq", columns)
    with pytest.raises(ValueError, match=re.escape(str(path)) + ": .*" + message):
        read(path, **options)


def test_parquet_without_pyarrow_says_what_to_install(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install fenchel\[parquet\]"):
        read(write("PAR1", "data.parquet"))


# every format


def test_missing_file_is_named_whatever_its_suffix(tmp_path: Path) -> None:
    for name in ("data.svm", "data.unknown"):
        with pytest.raises(FileNotFoundError, match=name):
            read(tmp_path / name)


def test_unknown_suffix_lists_the_known_ones(write: Write) -> None:
    for name in ("data", "data.doc", "data.doc.xz"):
        with pytest.raises(ValueError, match=r"\.svm, .*\.csv, .*\.npz, .*\.parquet") as caught:
            read(write("1 1:1", name))
        assert name in str(caught.value)


def test_format_overrides_the_suffix(write: Write) -> None:
    X, _ = read(write("1 1:1", "a9a"), format="svmlight")
    assert X.shape == (1, 1)
    with pytest.raises(ValueError, match="unknown format 'arff'; there are svmlight, csv, npz, parquet"):
        read(write("1 1:1"), format="arff")


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_empty_file_is_an_error(write: Write, name: str) -> None:
    for suffix, content in (("", b""), (".gz", gzip.compress(b""))):
        with pytest.raises(ValueError, match="the file is empty"):
            read(write(content, f"data{suffix}"), format=name)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        (name, option, value)
        for name, known in FORMATS.items()
        for option, value in (("target", "y"), ("target", False), ("zero_based", False), ("zero_based", True))
        if option not in known.options
    ],
)
def test_option_of_another_format_is_an_error(write: Write, name: str, option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{option} applies to .*, not to {name}"):
        read(write("1 1:1"), format=name, **{option: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": np.int64}, "dtype int64 is neither float32 nor float64"),
        ({"n_features": 0}, "n_features=0 should be at least 1"),
        ({"zero_based": "never"}, "zero_based='never' is neither True, False nor 'auto'"),
    ],
)
def test_option_out_of_range_is_an_error(write: Write, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(write("1 1:1"), **options)


# In pieces --------------------------------------------------------------------------------------------------------


def joined(parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    X = [part for part, _ in parts]
    y = None if parts[0][1] is None else np.concatenate([part for _, part in parts])
    return sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.vstack(X), y


@pytest.mark.parametrize("rows", [1, 7, 59, 60, 1000])
@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("zero_based", [False, True])
def test_the_pieces_of_an_svmlight_file_are_the_whole(rows: int, suffix: str, zero_based: bool, write: Write) -> None:
    text = random_svmlight(zero_based)
    compress = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
    path = write(compress(text), f"data.svm{suffix}")
    X, y = read(path, n_features=35, zero_based=zero_based)
    parts = list(batches(path, rows, n_features=35, zero_based=zero_based))
    assert [part.shape[0] for part, _ in parts] == [min(rows, 60 - k) for k in range(0, 60, rows)]
    again, labels = joined(parts)
    assert_same(again, X)
    assert parts[0][0].indices.dtype == np.int32
    np.testing.assert_array_equal(labels, y)


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("labels", [["1", "2", "1", "0", "2"], ["a", "b", "a", "1", "2"]])
@pytest.mark.parametrize("options", [{}, {"target": "y"}, {"target": False}, {"dtype": np.float32}])
def test_the_pieces_of_a_csv_file_are_the_whole(
    rows: int, labels: list[str], options: dict[str, Any], write: Write
) -> None:
    if options.get("target") is False and labels[0] == "a":
        labels = ["1"] * 5
    path = write("u,v,y\n" + "".join(f"{k},{k / 3},{label}\n" for k, label in enumerate(labels)), "data.csv")
    X, y = read(path, **options)
    again, found = joined(list(batches(path, rows, **options)))
    np.testing.assert_array_equal(again, X)
    assert again.dtype == X.dtype
    np.testing.assert_array_equal(found, y)


@pytest.mark.parametrize("rows", [2, 100])
def test_the_pieces_of_a_parquet_file_are_the_whole(rows: int, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "data.parquet"
    pandas.DataFrame({"u": np.arange(5.0), "v": np.arange(5), "y": list("abcab")}).to_parquet(path)
    X, y = read(path)
    again, found = joined(list(batches(path, rows)))
    np.testing.assert_array_equal(again, X)
    np.testing.assert_array_equal(found, y)


def test_pieces_take_the_memory_of_a_piece(tmp_path: Path) -> None:
    path = tmp_path / "data.svm.gz"
    line = b"1 " + b" ".join(b"%d:0.5" % k for k in range(1, 101)) + b"\n"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(20):
            file.write(line * 1000)
    most = 0
    tracemalloc.start()
    for X, _ in batches(path, 500, n_features=100):
        assert X.shape == (500, 100)
        most = max(most, tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    whole = 20_000 * 100 * 12
    assert most < whole / 4


@pytest.mark.parametrize(
    ("content", "name", "options", "message"),
    [
        ("1 1:2\n", "data.svm", {}, "pass n_features"),
        ("1 1:2\n1 3:1\n", "data.svm", {"n_features": 2}, "index 3 is beyond n_features=2"),
        ("1 1:2\n1 0:1\n", "data.svm", {"n_features": 2}, "line 2: feature 0 counts from 0"),
        ("1 1:2\n1 2:nan\n", "data.svm", {"n_features": 2}, "line 2: feature 2"),
        ("1,2\n3,4\n5,b\n", "data.csv", {"rows": 2}, "from line 3 on a target is text"),
        ("1,2\n3,4\n", "data.csv", {"zero_based": True}, "zero_based applies to svmlight"),
        ("1,2\n3,4\n", "data.csv", {"rows": 0}, "rows must be a whole number"),
        ("1,2\n3,4\n", "data.csv", {"rows": True}, "rows must be a whole number"),
        ("x", "data.npz", {}, "npz files are read as a whole"),
        ("", "data.csv", {}, "the file is empty"),
    ],
)
def test_what_is_wrong_with_a_piece_is_said(
    content: str, name: str, options: dict[str, Any], message: str, write: Write
) -> None:
    with pytest.raises(ValueError, match=message):
        list(batches(write(content, name), **options))
