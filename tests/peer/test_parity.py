"""What PyG's own tests ask of ``GATConv`` and ``GATv2Conv``, asked of both at once: the same weights give the same results."""

import copy
import io

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.nn import GATConv, GATv2Conv
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

from graphgym_lcat.nn import LCATConv, LCATv2Conv

PAIRS = {"gat": (GATConv, LCATConv), "gatv2": (GATv2Conv, LCATv2Conv)}
X_SRC = torch.randn(4, 8, generator=torch.Generator().manual_seed(0), dtype=torch.double)
X_DST = torch.randn(2, 16, generator=torch.Generator().manual_seed(1), dtype=torch.double)
EDGES = torch.tensor([[0, 1, 2, 3, 2, 0, 0], [0, 0, 1, 1, 2, 3, 3]])  # a self-loop, a duplicate, directed
BIPARTITE = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]])
EDGE_ATTR = torch.randn(7, 3, generator=torch.Generator().manual_seed(2), dtype=torch.double)


@pytest.fixture(params=PAIRS)
def build(request):
    """Builds both layers from the same arguments, with the same weights."""

    def create(*arguments, **options):
        torch.manual_seed(3)
        theirs = PAIRS[request.param][0](*arguments, **options).double()
        ours = PAIRS[request.param][1](*arguments, **options, lambda1=1, lambda2=0).double()
        ours.load_state_dict(theirs.state_dict())
        return theirs.eval(), ours.eval()

    return create


def check(layers, *arguments, **options):
    """Compares outputs, and the gradients of all parameters."""
    results = []
    for layer in layers:
        out = layer(*arguments, **options)
        parts = [out] if isinstance(out, torch.Tensor) else [out[0], out[1][1]]
        loss = sum((part * torch.arange(part.numel()).view_as(part)).sum() for part in parts)
        names, parameters = zip(*sorted(layer.named_parameters()), strict=True)
        results.append((names, parts, torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)))
    (names, parts, grads), (our_names, our_parts, our_grads) = results
    assert names == our_names
    torch.testing.assert_close(our_parts, parts)
    for name, grad, our_grad in zip(names, grads, our_grads, strict=True):
        torch.testing.assert_close(our_grad, grad, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("concat", [False, True])
def test_one_set_of_nodes(build, residual, concat):
    check(build(8, 32, heads=2, residual=residual, concat=concat), X_SRC, EDGES)


@pytest.mark.parametrize("options", [{"bias": False}, {"negative_slope": 0.0}, {"add_self_loops": False}])
def test_options(build, options):
    check(build(8, 5, heads=3, **options), X_SRC, EDGES)


def test_gatv2_with_shared_weights():
    theirs = GATv2Conv(8, 5, heads=2, share_weights=True).double()
    ours = LCATv2Conv(8, 5, heads=2, share_weights=True, lambda1=1, lambda2=0).double()
    ours.load_state_dict(theirs.state_dict())
    check((theirs, ours), X_SRC, EDGES)


@pytest.mark.parametrize("add_self_loops", [False, True])
def test_two_sets_of_nodes(build, add_self_loops):
    layers = build((8, 16), 5, heads=2, add_self_loops=add_self_loops, residual=True)
    check(layers, (X_SRC, X_DST), BIPARTITE)


@pytest.mark.parametrize("to_matrix", [to_torch_coo_tensor, to_torch_csr_tensor])
def test_sparse_matrices_say_how_many_destinations_there_are(to_matrix):
    layers = [
        GATConv((8, 16), 5, heads=2, add_self_loops=False).double(),
        LCATConv((8, 16), 5, heads=2, add_self_loops=False, lambda1=1, lambda2=0).double(),
    ]
    layers[1].load_state_dict(layers[0].state_dict())
    adj_t = to_matrix(BIPARTITE.flip(0), size=(2, 4))
    for layer in layers:
        assert layer((X_SRC, None), adj_t).shape == (2, 10)
    check(layers, (X_SRC, None), adj_t)
    check(layers, (X_SRC, X_DST), adj_t)
    check(layers, (X_SRC, None), BIPARTITE, size=(4, 2))


def test_two_sets_whose_sizes_do_not_fit_the_matrix_are_refused(build):
    adj_t = to_torch_csr_tensor(BIPARTITE.flip(0), size=(2, 4))
    for layer in build((8, 16), 5, add_self_loops=False):
        with pytest.raises(ValueError):
            layer((X_SRC, torch.cat([X_DST, X_DST])), adj_t)


@pytest.mark.parametrize("fill_value", ["mean", "add", "max", 0.5, torch.tensor([1.0, 2.0, 3.0]).double()])
def test_edge_features(build, fill_value):
    check(build(8, 5, heads=2, edge_dim=3, fill_value=fill_value), X_SRC, EDGES, EDGE_ATTR)


def test_edge_features_of_one_dimension(build):
    check(build(8, 5, heads=2, edge_dim=1), X_SRC, EDGES, EDGE_ATTR[:, 0])


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
@pytest.mark.parametrize("add_self_loops", [False, True])
def test_attention_weights_come_with_their_edges(build, flow, add_self_loops):
    layers = build(8, 5, heads=2, flow=flow, add_self_loops=add_self_loops)
    check(layers, X_SRC, EDGES, return_attention_weights=True)
    edges = [layer(X_SRC, EDGES, return_attention_weights=True)[1][0] for layer in layers]
    assert torch.equal(*edges)


@pytest.mark.parametrize("add_self_loops", [False, True])
def test_attention_weights_of_a_matrix_are_a_matrix(build, add_self_loops):
    adj_t = to_torch_csr_tensor(EDGES[:, :-1].flip(0), size=(4, 4))
    results = [
        layer(X_SRC, adj_t, return_attention_weights=True) for layer in build(8, 5, add_self_loops=add_self_loops)
    ]
    (out, (adj, alpha)), (our_out, (our_adj, our_alpha)) = results
    torch.testing.assert_close(our_out, out)
    assert our_adj.layout == adj.layout and our_alpha.shape == alpha.shape
    torch.testing.assert_close(our_adj.to_dense().sum(dim=1), adj.to_dense().sum(dim=1))


def test_an_edge_index_object_comes_back_as_one(build):
    edges = EdgeIndex(EDGES, sparse_size=(4, 4))
    for layer in build(8, 5):
        out, (returned, _) = layer(X_SRC, edges, return_attention_weights=True)
        assert isinstance(returned, EdgeIndex) and returned.sparse_size() == (4, 4)
        torch.testing.assert_close(out, layer(X_SRC, EDGES))


def test_a_graph_without_edges(build):
    nothing = torch.empty(2, 0, dtype=torch.long)
    check(build(8, 5, heads=2), X_SRC, nothing)
    check(build(8, 5, heads=2, add_self_loops=False), X_SRC, nothing)


def test_static_graphs_are_refused(build):
    for layer in build(8, 5):
        with pytest.raises((AssertionError, ValueError)):
            layer(X_SRC.expand(3, -1, -1), EDGES)


@pytest.mark.parametrize("channels", [-1, (-1, -1)])
@pytest.mark.parametrize("kind", PAIRS)
def test_sizes_from_the_first_input(kind, channels):
    for layer in PAIRS[kind]:
        conv = layer(channels, 5, heads=2, residual=True, edge_dim=-1)
        x = X_SRC.float() if channels == -1 else (X_SRC.float(), X_SRC[:, :6].float())
        assert conv(x, EDGES, EDGE_ATTR.float()).shape == (4, 10)
        assert not any(isinstance(p, torch.nn.UninitializedParameter) for p in conv.parameters())


def test_state_dicts_load_both_ways_and_layers_are_copied(build):
    theirs, ours = build(8, 5, heads=2, edge_dim=3, residual=True)
    theirs.load_state_dict(ours.state_dict())
    check((theirs, copy.deepcopy(ours)), X_SRC, EDGES, EDGE_ATTR)
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    check((theirs, torch.load(file, weights_only=False)), X_SRC, EDGES, EDGE_ATTR)


def test_dropout_acts_in_training_only(build):
    layers = build(8, 5, dropout=1.0)
    check(layers, X_SRC, EDGES)
    for layer in layers:
        torch.testing.assert_close(layer.train()(X_SRC, EDGES), layer.bias.expand(4, -1))


def test_hooks_see_the_same_messages(build):
    seen = []
    for layer in build(8, 5, heads=2):
        layer.register_message_forward_hook(lambda module, arguments, out: seen.append((arguments[0]["alpha"], out)))
        layer.register_edge_update_forward_hook(lambda module, arguments, out: seen.append(out))
        layer(X_SRC, EDGES)
    assert len(seen) == 4
    torch.testing.assert_close(seen[:2], seen[2:])


def test_reset_parameters_draws_new_weights(build):
    for layer in build(8, 5):
        before = [parameter.clone() for parameter in layer.parameters() if parameter.dim() == 2]
        layer.reset_parameters()
        after = [parameter for parameter in layer.parameters() if parameter.dim() == 2]
        assert all((old != new).any() for old, new in zip(before, after, strict=True))


def test_compiled_layers(build):
    theirs, ours = build(8, 5, heads=2)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(X_SRC, EDGES), theirs(X_SRC, EDGES))
