/**
 * All names that contain the vendor's label. The default dialect, `svc`, is that of the
 * specification; `kubernetes` is compatible with unmodified kubectl and client libraries
 * (CLIENT-2). No other code contains such a name. Names that are the same in both dialects are not
 * included: `x-kubernetes-*` extensions, `system:*` names, the protobuf magic, and names of flags
 * and metrics.
 */
export type DialectName = 'svc' | 'kubernetes';

interface Labels {
  /** Suffix of the vendor's API groups: `rbac.authorization.<groupSuffix>`. */
  readonly groupSuffix: string;
  /** Domain of labels, annotations, finalizers, and secret types: `<labelDomain>/metadata.name`. */
  readonly labelDomain: string;
  /** Prefix of system namespaces and programs: `<namespacePrefix>system`. */
  readonly namespacePrefix: string;
  readonly protobufMediaType: string;
  /** Name of the health check of the store. */
  readonly storeCheck: string;
  /** Environment variable with the input of an exec plugin. */
  readonly execInfo: string;
  /** Field manager of the command line whose client-side applies the server recognizes. */
  readonly tool: 'kubectl' | 'svcctl';
  readonly productName: string;
  /** Title of OpenAPI documents. */
  readonly documentTitle: string;
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
    documentTitle: 'svc',
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
    documentTitle: 'Kubernetes',
  },
};

/** Built-in groups without the vendor's suffix. */
const plainGroups = new Set(['', 'apps', 'batch', 'autoscaling', 'policy', 'extensions']);

/** The names of one dialect. */
export interface Dialect extends Labels {
  readonly name: DialectName;
  /**
   * `rbac.authorization` -> `rbac.authorization.svc.io`; plain groups such as `apps` are unchanged.
   */
  group(stem: string): string;
  /** `metadata.name` -> `svc.io/metadata.name`, optionally under a subdomain. */
  label(path: string, subdomain?: string): string;
  /**
   * An annotation under the groups' domain: `initial-events-end` -> `svc.io/initial-events-end`.
   */
  groupLabel(path: string): string;
  /** `system` -> `svc-system`. */
  systemNamespace(stem: string): string;
  /** The name of the server's program: `svc-apiserver`. */
  readonly serverProgram: string;
}

function createDialect(name: DialectName): Dialect {
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
    serverProgram: `${table.namespacePrefix}apiserver`,
  };
}

const dialects: Readonly<Record<DialectName, Dialect>> = {
  svc: createDialect('svc'),
  kubernetes: createDialect('kubernetes'),
};

/** Returns the dialect with a name, the same one for each call. */
export const dialectOf = (name: DialectName): Dialect => dialects[name];

/** The values of `--dialect`. */
export const dialectNames = Object.keys(tables) as readonly DialectName[];

/** WebSocket subprotocols of streams to containers, which have the same name in both dialects. */
export const channelProtocols = {
  /** Supports signaling the end of standard input. */
  newest: 'v5.channel.k8s.io',
  older: 'v4.channel.k8s.io',
} as const;

/** Media-type groups (`g=`) and apiVersions of `meta` that every dialect accepts in requests. */
export const acceptedMetaGroups: readonly string[] = ['meta.svc.io', 'meta.k8s.io'];

/** Groups in the media type of aggregated discovery that every dialect accepts. */
export const acceptedDiscoveryGroups: readonly string[] = [
  'apidiscovery.svc.io',
  'apidiscovery.k8s.io',
];
