import type { JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError, usageError } from '../../io.ts';
import { amountRoundedUp, listAt, nameOf, namespaceOf, objectAt } from '../../objects.ts';
import { alignLines, noHeadersFlag } from '../../output/table.ts';
import {
  allNamespacesFlag,
  fieldSelectorFlag,
  listObjects,
  selectorFlag,
  type Target,
  targetPath,
} from '../../selection.ts';
import type { Session } from '../../session.ts';

const topFlags: readonly FlagSpec[] = [
  selectorFlag,
  { name: 'sort-by', type: 'text', help: 'cpu or memory' },
  noHeadersFlag,
  { name: 'use-protocol-buffers', type: 'boolean', help: 'Ignored; svcctl reads JSON' },
];

const nodeCommand: Command = {
  name: 'node',
  aliases: ['nodes', 'no'],
  completes: 'nodes',
  summary: 'Display resource (CPU/memory) usage of nodes',
  usage: '[NAME | -l label]',
  flags: [
    ...topFlags,
    {
      name: 'show-capacity',
      type: 'boolean',
      help: 'Show percentages of the capacity instead of the allocatable amount',
    },
  ],
  async run(session, args) {
    const name = optionalName(args, 'node');
    if (name !== undefined && (session.flags.text('selector') ?? '') !== '') {
      throw new CliError('only one of NAME or --selector can be provided');
    }
    const metrics = await readMetrics(session, { kind: 'NodeMetrics', name });
    if (metrics.length === 0) throw new CliError('metrics not available yet');
    const total = session.flags.boolean('show-capacity') ? 'capacity' : 'allocatable';
    const resource = await session.resourceOfKind('Node');
    const nodes = await readObjects(session, { resource, namespace: '', name });
    const available = new Map(
      nodes.map((node) => [nameOf(node), objectAt(node, 'status', total)] as const),
    );
    const rows = sortRows(session, metrics.map(usageOfNode)).map(({ label, usage }) => {
      const amounts = available.get(label) ?? {};
      available.delete(label);
      return [label, ...usageCells(usage, amounts)];
    });
    const unknown = [...available.keys()].map((label) => [
      label,
      ...Array<string>(4).fill('<unknown>'),
    ]);
    const head = ['NAME', 'CPU(cores)', 'CPU(%)', 'MEMORY(bytes)', 'MEMORY(%)'];
    printTable(session, head, [...rows, ...unknown]);
    return 0;
  },
};

const podCommand: Command = {
  name: 'pod',
  aliases: ['pods', 'po'],
  completes: 'pods',
  summary: 'Display resource (CPU/memory) usage of pods',
  usage: '[NAME | -l label]',
  flags: [
    ...topFlags,
    fieldSelectorFlag,
    allNamespacesFlag,
    { name: 'containers', type: 'boolean', help: 'Show the usage of each container' },
    { name: 'sum', type: 'boolean', help: 'Print the sum as the last line' },
  ],
  async run(session, args) {
    const { flags } = session;
    const name = optionalName(args, 'pod');
    const selects = ['selector', 'field-selector'].some((flag) => (flags.text(flag) ?? '') !== '');
    if (name !== undefined && selects) {
      throw new CliError('only one of NAME or selector can be provided');
    }
    const metrics = await readMetrics(session, { kind: 'PodMetrics', name });
    if (metrics.length === 0) return reportNoPods(session);
    const withNamespace = flags.boolean('all-namespaces');
    const perContainer = flags.boolean('containers');
    const pods = metrics.map((metric) => ({
      ...usageOfPod(metric),
      containers: listAt(metric, 'containers').map(usageOfContainer),
    }));
    const lines = sortRows(session, pods).flatMap((pod) => {
      const namespaceCells = withNamespace ? [pod.namespace] : [];
      if (!perContainer) return [[...namespaceCells, pod.label, ...usageCells(pod.usage)]];
      return sortRows(session, pod.containers).map((container) => [
        ...namespaceCells,
        pod.label,
        container.label,
        ...usageCells(container.usage),
      ]);
    });
    const columns = [
      ...(withNamespace ? ['NAMESPACE'] : []),
      ...(perContainer ? ['POD'] : []),
      ...['NAME', 'CPU(cores)', 'MEMORY(bytes)'],
    ];
    printTable(session, columns, [
      ...lines,
      ...(flags.boolean('sum') ? sumLines(pods, columns.length) : []),
    ]);
    return 0;
  },
};

/** Prints usage as the metrics API reports it. Fails if the server does not aggregate one. */
export const topCommand: Command = {
  name: 'top',
  summary: 'Display resource (CPU/memory) usage',
  subcommands: [nodeCommand, podCommand],
};

function optionalName(args: readonly string[], what: string): string | undefined {
  const [name, ...more] = args;
  if (more.length > 0) throw usageError(`top ${what}`, `${what} [NAME | -l label]`);
  return name;
}

/** Reads objects of the metrics API. Rejects with CliError if the server does not serve it. */
async function readMetrics(
  session: Session,
  { kind, name }: { readonly kind: string; readonly name: string | undefined },
): Promise<JsonObject[]> {
  const sortBy = session.flags.text('sort-by') ?? '';
  if (!['', 'cpu', 'memory'].includes(sortBy)) {
    throw new CliError('--sort-by accepts only cpu or memory');
  }
  const { group } = await session.dialect();
  const resource = (await session.mapper()).byKind(`${group('metrics')}/v1beta1`, kind);
  if (resource === undefined) throw new CliError('Metrics API not available');
  const everywhere = !resource.namespaced || session.flags.boolean('all-namespaces');
  return readObjects(session, { resource, namespace: everywhere ? '' : session.namespace, name });
}

async function readObjects(session: Session, target: Target): Promise<JsonObject[]> {
  if (target.name !== undefined) return [await session.client.get(targetPath(target))];
  return listObjects(session.client, target, {
    labelSelector: session.flags.text('selector'),
    fieldSelector: session.flags.text('field-selector'),
  });
}

async function reportNoPods(session: Session): Promise<number> {
  const everywhere = session.flags.boolean('all-namespaces');
  const resource = await session.resourceOfKind('Pod');
  const namespace = everywhere ? '' : session.namespace;
  const pods = await readObjects(session, { resource, namespace, name: undefined });
  if (pods.length > 0) throw new CliError('metrics not available yet');
  const where = everywhere ? '' : ` in ${namespace} namespace.`;
  session.io.err(`No resources found${where}\n`);
  return 0;
}

/** Resource usage in billionths of a core and of a byte. */
interface Usage {
  readonly cpu: bigint;
  readonly memory: bigint;
}

interface UsageRow {
  readonly label: string;
  readonly namespace: string;
  readonly usage: Usage;
}

/** The units in which usage is compared and printed: thousandths of a core, and bytes. */
const nanoUnits: Usage = { cpu: 1_000_000n, memory: 1_000_000_000n };

const roundedUp = (usage: Usage, name: keyof Usage): bigint =>
  (usage[name] + nanoUnits[name] - 1n) / nanoUnits[name];

const usageOf = ({ cpu, memory }: JsonObject): Usage => ({
  cpu: amountRoundedUp(cpu, 1n),
  memory: amountRoundedUp(memory, 1n),
});

const usageOfNode = (metrics: JsonObject): UsageRow => ({
  label: nameOf(metrics),
  namespace: '',
  usage: usageOf(objectAt(metrics, 'usage')),
});

const usageOfContainer = (container: JsonObject): UsageRow => ({
  label: String(container['name']),
  namespace: '',
  usage: usageOf(objectAt(container, 'usage')),
});

const usageOfPod = (metrics: JsonObject): UsageRow => ({
  label: nameOf(metrics),
  namespace: namespaceOf(metrics),
  usage: sumOf(listAt(metrics, 'containers').map(usageOfContainer)),
});

const sumOf = (list: readonly UsageRow[]): Usage => ({
  cpu: list.reduce((sum, { usage }) => sum + usage.cpu, 0n),
  memory: list.reduce((sum, { usage }) => sum + usage.memory, 0n),
});

/** Sorts by name, or by usage in descending order. */
function sortRows<Row extends UsageRow>({ flags }: Session, rows: readonly Row[]): Row[] {
  const by = flags.text('sort-by') ?? '';
  const nameOrder = (left: Row, right: Row) => {
    const [leftName, rightName] = [left, right].map((row) => `${row.namespace}/${row.label}`);
    return leftName === rightName ? 0 : (leftName ?? '') < (rightName ?? '') ? -1 : 1;
  };
  if (by !== 'cpu' && by !== 'memory') return rows.toSorted(nameOrder);
  return rows.toSorted((left, right) =>
    Number(roundedUp(right.usage, by) - roundedUp(left.usage, by)),
  );
}

function usageCells(usage: Usage, available?: JsonObject): string[] {
  const cpu = `${roundedUp(usage, 'cpu')}m`;
  const memory = `${roundedUp(usage, 'memory') / (1024n * 1024n)}Mi`;
  if (available === undefined) return [cpu, memory];
  const total = usageOf(available);
  const percent = (name: keyof Usage) => {
    const all = roundedUp(total, name);
    return all === 0n ? '<unknown>' : `${(roundedUp(usage, name) * 100n) / all}%`;
  };
  return [cpu, percent('cpu'), memory, percent('memory')];
}

function sumLines(pods: readonly UsageRow[], columns: number): string[][] {
  const blanks = Array<string>(columns - 2).fill('');
  return [
    [...blanks, '________', '________'],
    [...blanks, ...usageCells(sumOf(pods))],
  ];
}

function printTable(session: Session, head: readonly string[], rows: readonly string[][]): void {
  const lines = session.flags.boolean('no-headers') ? rows : [head, ...rows];
  // Like kubectl, pad the last cell too.
  session.io.out(alignLines(lines.map((line) => [...line, ''])));
}
