import { capitalize } from '@wheelhouse/machinery';

/** The leading words of field names that Go spells in capital letters. */
const initialisms = new Set(
  (
    'api aws ca cel cidr cidrs csi dns fc fs gce gid gmsa grpc http id ip ips iqn iscsi json nfs ' +
    'os pd qos rbd se ssl tcp tls ttl tty uid url wwids'
  ).split(' '),
);

/** Fields whose names in Go differ from those in JSON. */
const irregular: ReadonlyMap<string, string> = new Map([
  ['metadata', 'ObjectMeta'],
  ['cephfs', 'CephFS'],
  ['storageos', 'StorageOS'],
  ['externalID', 'DoNotUseExternalID'],
  ['lastState', 'LastTerminationState'],
  ['chapAuthDiscovery', 'DiscoveryCHAPAuth'],
  ['chapAuthSession', 'SessionCHAPAuth'],
  ['diskURI', 'DataDiskURI'],
]);

/**
 * Returns the name of a struct's field in Go for the name of its member in JSON: `ClusterIP` for
 * `clusterIP`, `APIGroup` for `apiGroup`.
 */
export function goFieldName(name: string): string {
  const own = irregular.get(name);
  if (own !== undefined) return own;
  if (name.startsWith('$')) return goFieldName(name.slice(1));
  if (name.startsWith('x-kubernetes-')) {
    return `X${name.split('-').slice(2).map(capitalize).join('')}`;
  }
  const first = /^[a-z]+/.exec(name)?.[0] ?? '';
  if (!initialisms.has(first)) return capitalize(name);
  const isPlural = first.endsWith('s') && initialisms.has(first.slice(0, -1));
  const upper = first.toUpperCase();
  const word = isPlural || first === 'wwids' ? `${upper.slice(0, -1)}s` : upper;
  return word + name.slice(first.length);
}
