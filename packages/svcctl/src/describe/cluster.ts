import { ApiError } from '@wheelhouse/client';
import { type Amounts, amountsOf, podAmounts, sumAmounts } from '@wheelhouse/kinds';
import { type Dialect, humanDuration, type JsonObject, type Quantity } from '@wheelhouse/machinery';
import { listAt, nameOf, namespaceOf, objectAt, textAt, valueAt } from '../objects.ts';
import { metadataLines } from './metadata.ts';
import { conditionRows, conditionTable, longTime } from './pod-template.ts';
import type { RelatedDescriber, RelatedObjects } from './related.ts';
import { headLines, valueLines } from './tabs.ts';

const describeNode: RelatedDescriber = async (node, related) => {
  const [spec, status] = [objectAt(node, 'spec'), objectAt(node, 'status')];
  const name = nameOf(node);
  const info = (title: string, field: string) =>
    `  ${title}:\t${textAt(status, 'nodeInfo', field)}`;
  const ranges = [valueAt(spec, 'podCIDRs') ?? []].flat().map(String).join(',');
  const range = textAt(spec, 'podCIDR');
  const provider = textAt(spec, 'providerID');
  return [
    `Name:\t${name}`,
    `Roles:\t${rolesOf(node, related.dialect).join(',') || '<none>'}`,
    ...metadataLines(node),
    `CreationTimestamp:\t${longTime(textAt(node, 'metadata', 'creationTimestamp'))}`,
    ...valueLines('Taints', listAt(spec, 'taints').map(taintText).sort()),
    `Unschedulable:\t${spec['unschedulable'] === true}`,
    ...(await leaseLines(name, related)),
    ...nodeConditions(status),
    'Addresses:',
    ...listAt(status, 'addresses').map(
      (address) => `  ${textAt(address, 'type')}:\t${textAt(address, 'address')}`,
    ),
    ...resourceLines('Capacity', objectAt(status, 'capacity')),
    ...resourceLines('Allocatable', objectAt(status, 'allocatable')),
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

function taintText(taint: JsonObject): string {
  const [key, value, effect] = ['key', 'value', 'effect'].map((name) => textAt(taint, name));
  return `${key}${value === '' ? '' : `=${value}`}${effect === '' ? '' : `:${effect}`}`;
}

async function leaseLines(name: string, related: RelatedObjects): Promise<string[]> {
  let lease: JsonObject | undefined;
  try {
    const query = {
      namespace: related.dialect.systemNamespace('node-lease'),
      fieldSelector: `metadata.name=${name}`,
    };
    [lease] = await related.list('Lease', query);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [`Lease:\tFailed to get lease: ${error.message}`];
  }
  if (lease === undefined) {
    const resource = `leases.${related.dialect.group('coordination')}`;
    return [`Lease:\tFailed to get lease: ${resource} ${JSON.stringify(name)} not found`];
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

function resourceLines(title: string, list: JsonObject): string[] {
  const names = Object.keys(list).sort();
  if (names.length === 0) return [];
  return [`${title}:`, ...names.map((name) => `  ${name}:\t${String(list[name])}`)];
}

/** An amount and the percentage of what is allocatable. */
function shareText(amount: Quantity | undefined, allocatable: Quantity | undefined): string {
  const total = allocatable?.nano ?? 0n;
  const percent = total === 0n ? 0n : ((amount?.nano ?? 0n) * 100n) / total;
  return `${amount?.text ?? '0'} (${percent}%)`;
}

const shownResources = ['cpu', 'memory', 'ephemeral-storage'];

/** Whether a node reports a resource that only some nodes have. */
const isExtended = (name: string): boolean =>
  !shownResources.includes(name) && name !== 'pods' && name !== 'storage';

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
  const amounts = (member: 'requests' | 'limits') =>
    pods.map((pod) => podAmounts(objectAt(pod, 'spec'), member));
  const [requests, limits] = [amounts('requests'), amounts('limits')];
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

function quotaBlock(quota: JsonObject): string[] {
  const scopes = [valueAt(quota, 'spec', 'scopes') ?? []].flat().map(String).sort();
  return [
    `  Name:\t${nameOf(quota)}`,
    ...(scopes.length === 0 ? [] : [`  Scopes:\t${scopes.join(', ')}`]),
    '  Resource\tUsed\tHard',
    '  --------\t---\t---',
    ...usageLines(quota).map((line) => `  ${line}`),
  ];
}

function usageLines(quota: JsonObject): string[] {
  const [hard, used] = ['hard', 'used'].map((name) => objectAt(quota, 'status', name));
  return Object.keys(hard ?? {})
    .sort()
    .map((name) => `${name}\t${String(used?.[name] ?? '0')}\t${String(hard?.[name])}`);
}

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

const describeQuota: RelatedDescriber = (quota) => {
  const scopes = [valueAt(quota, 'spec', 'scopes') ?? []].flat().map(String).sort();
  return [
    `Name:\t${nameOf(quota)}`,
    `Namespace:\t${textAt(quota, 'metadata', 'namespace')}`,
    ...(scopes.length === 0 ? [] : [`Scopes:\t${scopes.join(', ')}`]),
    'Resource\tUsed\tHard',
    '--------\t----\t----',
    ...usageLines(quota),
  ];
};

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
