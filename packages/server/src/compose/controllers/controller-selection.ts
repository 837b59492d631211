/**
 * A controller that `--controllers` can switch, by upstream's name and the one before it. What
 * upstream's API server itself does is not among them: custom kinds, the keeping of the system's
 * namespaces and default roles, and the expiry of Events.
 */
interface SelectableController {
  readonly name: string;
  readonly alias: string;
  /** Whether `*` means it too. */
  readonly byDefault: 'on' | 'off';
}

const selectable = [
  { name: 'garbage-collector-controller', alias: 'garbagecollector', byDefault: 'on' },
  { name: 'namespace-controller', alias: 'namespace', byDefault: 'on' },
  {
    name: 'clusterrole-aggregation-controller',
    alias: 'clusterrole-aggregation',
    byDefault: 'on',
  },
  { name: 'serviceaccount-controller', alias: 'serviceaccount', byDefault: 'on' },
  {
    name: 'root-ca-certificate-publisher-controller',
    alias: 'root-ca-cert-publisher',
    byDefault: 'on',
  },
  {
    name: 'serviceaccount-token-controller',
    alias: 'serviceaccount-token',
    byDefault: 'on',
  },
  {
    name: 'validatingadmissionpolicy-status-controller',
    alias: 'validatingadmissionpolicy-status',
    byDefault: 'on',
  },
  { name: 'autoregister-controller', alias: 'autoregister', byDefault: 'on' },
  { name: 'default-service-controller', alias: 'default-service', byDefault: 'on' },
  { name: 'identity-lease-controller', alias: 'identity-lease', byDefault: 'on' },
  { name: 'legacy-token-tracking-controller', alias: 'legacy-token-tracking', byDefault: 'on' },
  {
    name: 'persistentvolumeclaim-protection-controller',
    alias: 'pvc-protection',
    byDefault: 'on',
  },
  { name: 'persistentvolume-protection-controller', alias: 'pv-protection', byDefault: 'on' },
  { name: 'resourcequota-controller', alias: 'resourcequota', byDefault: 'on' },
  // It has work only where MultiCIDRServiceAllocator is on.
  { name: 'service-cidr-controller', alias: 'service-cidr', byDefault: 'on' },
  { name: 'bootstrap-signer-controller', alias: 'bootstrapsigner', byDefault: 'off' },
  { name: 'token-cleaner-controller', alias: 'tokencleaner', byDefault: 'off' },
] as const satisfies readonly SelectableController[];

export type ControllerName = (typeof selectable)[number]['name'];

/**
 * The item of `--controllers` that means the controllers that upstream's API server runs itself,
 * without those of its controller manager (PLANE-1).
 */
const apiServerItem = 'api-server';
const ofApiServer: readonly ControllerName[] = [
  'autoregister-controller',
  'default-service-controller',
  'identity-lease-controller',
  'legacy-token-tracking-controller',
];

/**
 * Selects controllers by the items of `--controllers` (AUTHN-4): `*` all that run by default,
 * `api-server` those of upstream's API server, `name` that one, `-name` not that one; of a name's
 * items the first counts, as upstream.
 */
export function controllerSelection(items: readonly string[]): (name: ControllerName) => boolean {
  return (name) => {
    const found = selectable.find((one) => one.name === name);
    if (found === undefined) return false;
    for (const item of items) {
      if (item === name || item === found.alias) return true;
      if (item === `-${name}` || item === `-${found.alias}`) return false;
    }
    if (items.includes(apiServerItem) && ofApiServer.includes(name)) return true;
    return items.includes('*') && found.byDefault === 'on';
  };
}

/** Whether any controller runs that upstream's controller manager has. */
export function runsManager(items: readonly string[]): boolean {
  const runs = controllerSelection(items);
  return selectable.some(({ name }) => !ofApiServer.includes(name) && runs(name));
}

/** The first item that names no controller; undefined when all are known. */
export function unknownController(items: readonly string[]): string | undefined {
  const names = new Set(selectable.flatMap(({ name, alias }) => [name, alias] as string[]));
  const groups = ['*', apiServerItem];
  return items.find((item) => !groups.includes(item) && !names.has(item.replace(/^-/, '')));
}

/** Names for the help of the flag. */
export const controllerNames: readonly string[] = selectable.map(({ name }) => name);
