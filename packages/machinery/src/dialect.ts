/**
 * Every name that carries the vendor label. The default dialect, `svc`, is the specification's; the
 * other, `kubernetes`, is upstream's, for unmodified kubectl and client libraries (CLIENT-2).
 * Nothing else in the code spells such a name. Not part of it, being the same in both:
 * `x-kubernetes-*` extensions, `system:*` names, the protobuf magic, flag and metric names.
 */
export type DialectName = 'svc' | 'kubernetes';

interface Labels {
  /** Ends the API groups that belong to a vendor: `rbac.authorization.<groupSuffix>`. */
  readonly groupSuffix: string;
  /** Domain of labels, annotations, finalizers and secret types: `<labelDomain>/metadata.name`. */
  readonly labelDomain: string;
  /** Ahead of the system namespaces and programs: `<namespacePrefix>system`. */
  readonly namespacePrefix: string;
  readonly protobufMediaType: string;
  /** Name of the health check that asks the store. */
  readonly storeCheck: string;
  /** Environment variable that hands an exec plugin its input. */
  readonly execInfo: string;
  /** The command line whose client-side applies the server knows, by its field manager. */
  readonly tool: 'kubectl' | 'svcctl';
  readonly productName: string;
}

const tables: Readonly<Record<DialectName, Labels>> = {
  svc: {
    groupSuffix: 'svc.io',
    labelDomain: 'svc.io',
    namespacePrefix: 'svc-',
    protobufMediaType: 'application/vnd.svc.protobuf',
    storeCheck: 'store',
    execInfo: 'SVC_EXEC_INFO',
    tool: 'svcctl',
    productName: 'svc',
  },
  kubernetes: {
    groupSuffix: 'k8s.io',
    labelDomain: 'kubernetes.io',
    namespacePrefix: 'kube-',
    protobufMediaType: 'application/vnd.kubernetes.protobuf',
    storeCheck: 'etcd',
    execInfo: 'KUBERNETES_EXEC_INFO',
    tool: 'kubectl',
    productName: 'kubernetes',
  },
};

/** Groups without the vendor's suffix; all other built-in groups have it. */
const plainGroups = new Set(['', 'apps', 'batch', 'autoscaling', 'policy', 'extensions']);

export interface Dialect extends Labels {
  readonly name: DialectName;
  /** `rbac.authorization` -> `rbac.authorization.svc.io`; plain groups (`apps`) stay as they are. */
  group(stem: string): string;
  /** `metadata.name` -> `svc.io/metadata.name`; below a subdomain where one is given. */
  label(path: string, subdomain?: string): string;
  /** An annotation under the groups' domain: `initial-events-end` -> `svc.io/initial-events-end`. */
  groupLabel(path: string): string;
  /** `system` -> `svc-system`. */
  systemNamespace(stem: string): string;
  /** A program by its name: `apiserver` -> `svc-apiserver`. */
  component(stem: string): string;
}

/** Makes the dialect of a name. */
export function dialectOf(name: DialectName): Dialect {
  const table = tables[name];
  return {
    ...table,
    name,
    group: (stem) => (plainGroups.has(stem) ? stem : `${stem}.${table.groupSuffix}`),
    label: (path, subdomain) =>
      subdomain === undefined
        ? `${table.labelDomain}/${path}`
        : `${subdomain}.${table.labelDomain}/${path}`,
    groupLabel: (path) => `${table.groupSuffix}/${path}`,
    systemNamespace: (stem) => `${table.namespacePrefix}${stem}`,
    component: (stem) => `${table.namespacePrefix}${stem}`,
  };
}

/** The names `--dialect` takes. */
export const dialectNames = Object.keys(tables) as readonly DialectName[];

/** WebSocket protocols of streams into containers, which have one name in both dialects. */
export const channelProtocols = {
  /** Can say that standard input has ended. */
  newest: 'v5.channel.k8s.io',
  older: 'v4.channel.k8s.io',
} as const;

/** Media-type groups (`g=`) and apiVersions of `meta` that every dialect understands in requests. */
export const acceptedMetaGroups: readonly string[] = ['meta.svc.io', 'meta.k8s.io'];

/** Groups by which clients ask for aggregated discovery, in every dialect. */
export const acceptedDiscoveryGroups: readonly string[] = [
  'apidiscovery.svc.io',
  'apidiscovery.k8s.io',
];
