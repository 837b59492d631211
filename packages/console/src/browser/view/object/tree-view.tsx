import { Graph, layout } from '@dagrejs/dagre';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { messageOf } from '../../model/failure.ts';
import { loadTree, type OwnershipTree, type TreeNode } from '../../model/insight/ownership-tree.ts';
import type { ObjectName } from '../../model/kinds.ts';
import { objectRoute } from '../../model/route.ts';
import { useApp } from '../parts/app.ts';
import { Button, Empty, Fault, KindMark, Link } from '../parts/basics.tsx';

const nodeWidth = 230;
const nodeHeight = 54;
const margin = 16;

/** The owners and dependents of an object as a graph. */
export function TreeView(props: { readonly target: ObjectName }) {
  const { target } = props;
  const { api, discovered } = useApp();
  const [tree, setTree] = useState<OwnershipTree | string>();
  const [reading, setReading] = useState(0);
  // Reads when the tab opens, and on demand.
  useEffect(() => {
    const abort = new AbortController();
    loadTree(api, { target, kinds: discovered.kinds, signal: abort.signal }).then(
      setTree,
      (error: unknown) => {
        if (!abort.signal.aborted) setTree(messageOf(error));
      },
    );
    return () => abort.abort(new Error('closed'));
  }, [reading]);
  if (tree === undefined) return <p role="status">Loading owners and dependents…</p>;
  if (typeof tree === 'string') return <Fault>{tree}</Fault>;
  return (
    <>
      <div class="bar">
        <Button act={() => setReading(reading + 1)}>Refresh</Button>
        {tree.unread.length > 0 && (
          <span class="warning">Not listed: {tree.unread.join(', ')}</span>
        )}
        {tree.isTruncated && <span class="warning">Not all dependents are shown.</span>}
      </div>
      {tree.nodes.length === 1 && <Empty>This object has no owners and no dependents.</Empty>}
      <Drawing tree={tree} />
    </>
  );
}

interface GraphLayout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly { readonly node: TreeNode; readonly x: number; readonly y: number }[];
  readonly paths: readonly string[];
}

function Drawing(props: { readonly tree: OwnershipTree }) {
  const { tree } = props;
  const { width, height, nodes, paths } = useMemo(() => layOut(tree), [tree]);
  const size = { width: `${width}px`, height: `${height}px` };
  return (
    <div class="scroll graph-box" tabIndex={0} role="region" aria-label="Owners and dependents">
      <div class="graph" style={size}>
        <svg width={width} height={height} aria-hidden="true" focusable="false">
          {paths.map((path) => (
            <path key={path} d={path} />
          ))}
        </svg>
        <ul>
          {nodes.map(({ node, x, y }) => (
            <li
              key={node.uid}
              class={`node ${node.role} ${node.isTerminating ? 'going' : ''}`}
              style={{ left: `${x}px`, top: `${y}px` }}
              aria-current={node.role === 'subject' ? 'true' : undefined}
            >
              <Node node={node} />
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function Node(props: { readonly node: TreeNode }) {
  const { kind, name, target } = props.node;
  const content = (
    <>
      <KindMark kind={kind} group={target?.kind.group ?? ''} />
      <span class="node-text">
        <small>{kind}</small>
        <span class="node-name" title={name}>
          {name}
        </span>
      </span>
    </>
  );
  if (target === undefined) return <span class="missing">{content}</span>;
  return <Link to={objectRoute(target, 'tree')}>{content}</Link>;
}

/** Lays out the nodes from left to right, owners first. */
function layOut({ nodes, edges }: OwnershipTree): GraphLayout {
  const graph = new Graph();
  graph.setGraph({ rankdir: 'LR', nodesep: 18, ranksep: 60, marginx: margin, marginy: margin });
  graph.setDefaultEdgeLabel(() => ({}));
  // Owner references may contain any UID, such as `__proto__`, and the library uses plain objects.
  const ids = new Map(nodes.map(({ uid }, index) => [uid, `n${index}`]));
  const idOf = (uid: string) => ids.get(uid) ?? '';
  const lines = edges
    .filter(({ owner, dependent }) => ids.has(owner) && ids.has(dependent))
    .map(({ owner, dependent }) => [idOf(owner), idOf(dependent)] as const);
  for (const id of ids.values()) graph.setNode(id, { width: nodeWidth, height: nodeHeight });
  for (const [owner, dependent] of lines) graph.setEdge(owner, dependent);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  return {
    width: Math.ceil(Number(width)),
    height: Math.ceil(Number(height)),
    nodes: nodes.map((node) => {
      const { x, y } = graph.node(idOf(node.uid));
      return { node, x: x - nodeWidth / 2, y: y - nodeHeight / 2 };
    }),
    paths: lines.map(([owner, dependent]) => curve(graph.node(owner), graph.node(dependent))),
  };
}

function curve(
  from: { readonly x: number; readonly y: number },
  to: { readonly x: number; readonly y: number },
): string {
  const [startX, endX] = [from.x + nodeWidth / 2, to.x - nodeWidth / 2];
  const middle = (startX + endX) / 2;
  return `M${startX},${from.y} C${middle},${from.y} ${middle},${to.y} ${endX},${to.y}`;
}
