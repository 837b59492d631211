import { ApiError } from '@wheelhouse/client';
import { type Amounts, amountsOf, containerAmountsSteps, sumAmounts } from '@wheelhouse/kinds';
import {
  compareText,
  type Dialect,
  humanDuration,
  type JsonObject,
  parseQuantity,
  type Quantity,
  runInOnePiece,
  sumQuantities,
} from '@wheelhouse/machinery';
import {
  amountRoundedUp,
  listAt,
  nameOf,
  namespaceOf,
  objectAt,
  textAt,
  textsAt,
} from '../objects.ts';
import { metadataLines } from './metadata.ts';
import { amountLines, conditionRows, conditionTable, longTime } from './pod-template.ts';
import type { RelatedDescriber, RelatedObjects } from './related.ts';
import { headLines, valueLines } from './tabs.ts';

const describeNode: RelatedDescriber = async (node, related) => {
  const [spec, status] = [objectAt(node, 'spec'), objectAt(node, 'status')];
  const name = nameOf(node);
  const info = (title: string, field: string) =>
    `  ${title}:\t${textAt(status, 'nodeInfo', field)}`;
  const ranges = textsAt(spec, 'podCIDRs').join(',');
  const range = textAt(spec, 'podCIDR');
  const provider = textAt(spec, 'providerID');
  return [
    `Name:\t${name}`,
    `Roles:\t${rolesOf(node, related.dialect).join(',') || '<none>'}`,
    ...metadataLines(node),
    `CreationTimestamp:\t${longTime(textAt(node, 'metadata', 'creationTimestamp'))}`,
    ...valueLines('Taints', taintsOf(spec).map(taintText)),
    `Unschedulable:\t${spec['unschedulable'] === true}`,
    ...(await leaseLines(name, related)),
    ...nodeConditions(status),
    'Addresses:',
    ...listAt(status, 'addresses').map(
      (address) => `  ${textAt(address, 'type')}:\t${textAt(address, 'address')}`,
    ),
    ...amountLines('Capacity', objectAt(status, 'capacity')),
    ...amountLines('Allocatable', objectAt(status, 'allocatable')),
    'System Info:',
    info('Machine ID', 'machineID'),
    info('System UUID', 'systemUUID'),
    info('Boot ID', 'bootID'),
    info('Kernel Version', 'kernelVersion'),
    info('OS Image', 'osImage'),
    info('Operating System', 'operatingSystem'),
    info('Architecture', 'architecture'),
    info('Container Runtime Version', 'containerRuntimeVersion'),
    info('Kubelet Version', 'kubeletVersion'),
    info('Kube-Proxy Version', 'kubeProxyVersion'),
    ...(range === '' ? [] : [`PodCIDR:\t${range}`]),
    ...(ranges === '' ? [] : [`PodCIDRs:\t${ranges}`]),
    ...(provider === '' ? [] : [`ProviderID:\t${provider}`]),
    ...(await podLines(node, related)),
  ];
};

function rolesOf(node: JsonObject, dialect: Dialect): string[] {
  const rolePrefix = dialect.label('', 'node-role');
  const roles = Object.entries(objectAt(node, 'metadata', 'labels')).flatMap(([key, value]) => {
    if (key.startsWith(rolePrefix)) return [key.slice(rolePrefix.length)];
    return key === dialect.label('role') ? [String(value)] : [];
  });
  return [...new Set(roles)].filter((role) => role !== '').sort();
}

/** The taints of a node, by effect and key. */
function taintsOf(spec: JsonObject): JsonObject[] {
  const keyOf = (taint: JsonObject) => `${textAt(taint, 'effect')},${textAt(taint, 'key')}`;
  return listAt(spec, 'taints').toSorted((left, right) => compareText(keyOf(left), keyOf(right)));
}

function taintText(taint: JsonObject): string {
  const [key, value, effect] = ['key', 'value', 'effect'].map((name) => textAt(taint, name));
  return `${key}${value === '' ? '' : `=${value}`}${effect === '' ? '' : `:${effect}`}`;
}

async function leaseLines(name: string, related: RelatedObjects): Promise<string[]> {
  let lease: JsonObject;
  try {
    const namespace = related.dialect.systemNamespace('node-lease');
    lease = await related.get('Lease', name, { namespace });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [`Lease:\tFailed to get lease: ${error.message}`];
  }
  const time = (field: string) => {
    const text = textAt(lease, 'spec', field);
    return text === '' ? '<unset>' : longTime(text);
  };
  return [
    'Lease:',
    `  HolderIdentity:\t${textAt(lease, 'spec', 'holderIdentity') || '<unset>'}`,
    `  AcquireTime:\t${time('acquireTime')}`,
    `  RenewTime:\t${time('renewTime')}`,
  ];
}

function nodeConditions(status: JsonObject): string[] {
  const conditions = listAt(status, 'conditions');
  if (conditions.length === 0) return [];
  const heads = ['Type', 'Status', 'LastHeartbeatTime', 'LastTransitionTime', 'Reason', 'Message'];
  const rows = conditionRows(conditions, 'lastHeartbeatTime');
  return ['Conditions:', ...headLines(heads, '  '), ...rows];
}

/** An amount and the percentage of what is allocatable. */
function shareText(amount: Quantity | undefined, allocatable: Quantity | undefined): string {
  const total = allocatable?.nano ?? 0n;
  const percent = total === 0n ? 0n : ((amount?.nano ?? 0n) * 100n) / total;
  return `${amount?.text ?? '0'} (${percent}%)`;
}

const shownResources = ['cpu', 'memory', 'ephemeral-storage'];

/** Whether a node reports a resource that only some nodes have. */
const isExtended = (name: string): boolean => !shownResources.includes(name) && name !== 'pods';

/** What a Pod requests or may use on a node, with its overhead. */
function amountsOnNode(pod: JsonObject, list: 'requests' | 'limits'): Amounts {
  const spec = objectAt(pod, 'spec');
  const amounts = runInOnePiece(containerAmountsSteps(spec, list));
  const overhead = [...amountsOf(spec['overhead'])];
  // Resources without a limit stay unlimited.
  const isCounted = (name: string) => list === 'requests' || amounts.get(name)?.nano;
  return sumAmounts(amounts, new Map(overhead.filter(([name]) => isCounted(name))));
}

async function podLines(node: JsonObject, related: RelatedObjects): Promise<string[]> {
  const fieldSelector = `spec.nodeName=${nameOf(node)},status.phase!=Failed,status.phase!=Succeeded`;
  let pods: JsonObject[];
  try {
    pods = await related.list('Pod', { fieldSelector });
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return ['Pods:\tnot authorized'];
    throw error;
  }
  const capacity = objectAt(node, 'status', 'capacity');
  const stated = objectAt(node, 'status', 'allocatable');
  const allocatable = amountsOf(Object.keys(stated).length > 0 ? stated : capacity);
  const requests = pods.map((pod) => amountsOnNode(pod, 'requests'));
  const limits = pods.map((pod) => amountsOnNode(pod, 'limits'));
  const rows = pods.map((pod, at) => {
    const cells = ['cpu', 'memory'].flatMap((name) =>
      [requests[at], limits[at]].map((list) => shareText(list?.get(name), allocatable.get(name))),
    );
    const created = Date.parse(textAt(pod, 'metadata', 'creationTimestamp'));
    const age = Number.isNaN(created) ? '<unknown>' : humanDuration(related.now - created);
    const { namespace, name } = objectAt(pod, 'metadata');
    return `  ${String(namespace)}\t${String(name)}\t\t${cells.join('\t')}\t${age}`;
  });
  return [
    `Non-terminated Pods:\t(${pods.length} in total)`,
    '  Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge',
    '  ---------\t----\t\t------------\t----------\t---------------\t-------------\t---',
    ...rows,
    'Allocated resources:',
    '  (Total limits may be over 100 percent, i.e., overcommitted.)',
    ...headLines(['Resource', 'Requests', 'Limits'], '  '),
    ...totalLines(allocatable, {
      requests: requests.reduce(sumAmounts, new Map()),
      limits: limits.reduce(sumAmounts, new Map()),
    }),
  ];
}

function totalLines(
  allocatable: Amounts,
  totals: { readonly requests: Amounts; readonly limits: Amounts },
): string[] {
  const { requests, limits } = totals;
  const isHugePage = (name: string) => name.startsWith('hugepages-');
  const special = [...allocatable.keys()].filter(isExtended).sort();
  const shares = [...shownResources, ...special.filter(isHugePage)].map((name) => {
    const total = allocatable.get(name);
    const [request, limit] = [requests, limits].map((list) => shareText(list.get(name), total));
    return `  ${name}\t${request}\t${limit}`;
  });
  const others = special.filter((name) => !isHugePage(name));
  const plain = (list: Amounts, name: string) => list.get(name)?.text ?? '0';
  return [
    ...shares,
    ...others.map((name) => `  ${name}\t${plain(requests, name)}\t${plain(limits, name)}`),
  ];
}

const describeNamespace: RelatedDescriber = async (object, related) => {
  const namespace = nameOf(object);
  const quotas = await related.list('ResourceQuota', { namespace });
  const ranges = await related.list('LimitRange', { namespace });
  return [
    `Name:\t${namespace}`,
    ...metadataLines(object),
    `Status:\t${textAt(object, 'status', 'phase')}`,
    ...conditionTable(listAt(object, 'status', 'conditions')),
    '',
    ...quotaLines(quotas),
    '',
    ...(ranges.length === 0
      ? ['No LimitRange resource.']
      : ['Resource Limits', ...limitTable(ranges, ' ')]),
  ];
};

function quotaLines(quotas: readonly JsonObject[]): string[] {
  if (quotas.length === 0) return ['No resource quota.'];
  return ['Resource Quotas', ...quotas.flatMap(quotaBlock)];
}

const quotaBlock = (quota: JsonObject): string[] =>
  [
    `Name:\t${nameOf(quota)}`,
    ...scopeLines(quota, '* '),
    'Resource\tUsed\tHard',
    '--------\t---\t---',
    ...usageLines(quota, (used) => used),
  ].map((line) => `  ${line}`);

const scopeNotes: Readonly<Record<string, string>> = {
  Terminating:
    'Matches all pods that have an active deadline. These pods have a limited lifespan on a node ' +
    'before being actively terminated by the system.',
  NotTerminating:
    'Matches all pods that do not have an active deadline. These pods usually include long ' +
    'running pods whose container command is not expected to terminate.',
  BestEffort:
    'Matches all pods that do not have resource requirements set. These pods have a best effort ' +
    'quality of service.',
  NotBestEffort:
    'Matches all pods that have at least one resource requirement set. These pods have a ' +
    'burstable or guaranteed quality of service.',
};

/** The scopes of a quota, each explained in a line that begins with `mark`. */
function scopeLines(quota: JsonObject, mark: string): string[] {
  const scopes = textsAt(quota, 'spec', 'scopes').sort();
  if (scopes.length === 0) return [];
  const notes = scopes.flatMap((scope) =>
    Object.hasOwn(scopeNotes, scope) ? [scopeNotes[scope] ?? ''] : [],
  );
  return [`Scopes:\t${scopes.join(', ')}`, ...notes.map((note) => `${mark}${note}`)];
}

/** @param usedText formats a used amount for the amount of the quota */
function usageLines(quota: JsonObject, usedText: (used: string, hard: string) => string): string[] {
  const [hard, used] = ['hard', 'used'].map((name) => objectAt(quota, 'status', name));
  return Object.keys(hard ?? {})
    .sort()
    .map((name) => {
      const amount = textAt(hard, name);
      return `${name}\t${usedText(textAt(used, name) || '0', amount)}\t${amount}`;
    });
}

/** A used amount in the format of the quota's; rounded up to a whole number if it has another. */
function inFormatOf(used: string, hard: string): string {
  const limit = parseQuantity(hard);
  if (used.endsWith('i') === hard.endsWith('i') || 'error' in limit) return used;
  const nano = amountRoundedUp(used, billion) * billion;
  // The sum is printed in the format of the first amount.
  return sumQuantities([limit, { nano: nano - limit.nano, text: '' }]).text;
}

const billion = 1_000_000_000n;

const limitMembers = ['min', 'max', 'defaultRequest', 'default', 'maxLimitRequestRatio'];

/** A table of the limits of ranges. */
function limitTable(ranges: readonly JsonObject[], indent: '' | ' '): string[] {
  const limits = ranges.flatMap((range) => listAt(range, 'spec', 'limits'));
  const heads = ['Type', 'Resource', 'Min', 'Max', 'Default Request', 'Default Limit'];
  const rows = limits.flatMap((limit) => {
    const names = limitMembers.flatMap((name) => Object.keys(objectAt(limit, name)));
    return [...new Set(names)].sort().map((name) => {
      const values = limitMembers.map((part) => String(objectAt(limit, part)[name] ?? '-'));
      return `${indent}${[textAt(limit, 'type'), name, ...values].join('\t')}`;
    });
  });
  return [...headLines([...heads, 'Max Limit/Request Ratio'], indent), ...rows];
}

const describeRange: RelatedDescriber = (range) => [
  `Name:\t${nameOf(range)}`,
  `Namespace:\t${namespaceOf(range)}`,
  ...limitTable([range], ''),
];

const describeQuota: RelatedDescriber = (quota) => [
  `Name:\t${nameOf(quota)}`,
  `Namespace:\t${namespaceOf(quota)}`,
  ...scopeLines(quota, ' * '),
  'Resource\tUsed\tHard',
  '--------\t----\t----',
  ...usageLines(quota, inFormatOf),
];

const describeServiceAccount: RelatedDescriber = async (account, related) => {
  const secrets = await secretsOf(account, related);
  const names = (list: string) =>
    listAt(account, list).map((reference) => textAt(reference, 'name'));
  const lines = (title: string, list: readonly string[]) => {
    const isMissing = (name: string) => secrets !== undefined && !secrets.all.has(name);
    const rows = list.map((name) => `${name}${isMissing(name) ? ' (not found)' : ''}`);
    if (rows.length === 0) return [`${title}\t<none>`];
    return rows.map((row, at) => `${at === 0 ? title : ' '.repeat(title.length)}\t${row}`);
  };
  return [
    `Name:\t${nameOf(account)}`,
    `Namespace:\t${textAt(account, 'metadata', 'namespace')}`,
    ...metadataLines(account),
    ...lines('Image pull secrets:', names('imagePullSecrets')),
    ...lines('Mountable secrets: ', names('secrets')),
    ...lines('Tokens:            ', secrets?.tokens ?? []),
  ];
};

/** The names of all secrets and of an account's tokens; undefined if the server refuses. */
async function secretsOf(
  account: JsonObject,
  related: RelatedObjects,
): Promise<{ all: ReadonlySet<string>; tokens: string[] } | undefined> {
  let secrets: JsonObject[];
  try {
    secrets = await related.list('Secret');
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
  const uid = textAt(account, 'metadata', 'uid');
  const label = (name: string) => related.dialect.label(name);
  const tokens = secrets.filter((secret) => {
    const annotations = objectAt(secret, 'metadata', 'annotations');
    return (
      textAt(secret, 'type') === label('service-account-token') &&
      annotations[label('service-account.name')] === nameOf(account) &&
      annotations[label('service-account.uid')] === uid
    );
  });
  return { all: new Set(secrets.map(nameOf)), tokens: tokens.map(nameOf) };
}

/** Describers of nodes, namespaces, and what a namespace's Pods share. */
export const clusterDescribers: Readonly<Record<string, RelatedDescriber>> = {
  LimitRange: describeRange,
  Namespace: describeNamespace,
  Node: describeNode,
  ResourceQuota: describeQuota,
  ServiceAccount: describeServiceAccount,
};
