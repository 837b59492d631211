import { expect, test } from 'vitest';
import { goFieldName } from './go-names.ts';

test.each([
  ['name', 'Name'],
  ['clusterIP', 'ClusterIP'],
  ['uid', 'UID'],
  ['apiGroup', 'APIGroup'],
  ['apiVersions', 'APIVersions'],
  ['ips', 'IPs'],
  ['cidrs', 'CIDRs'],
  ['wwids', 'WWIDs'],
  ['ipFamilies', 'IPFamilies'],
  ['seLinuxOptions', 'SELinuxOptions'],
  ['httpGet', 'HTTPGet'],
  ['idle', 'Idle'],
  ['metadata', 'ObjectMeta'],
  ['cephfs', 'CephFS'],
  ['$ref', 'Ref'],
  ['x-kubernetes-list-map-keys', 'XListMapKeys'],
])('the field of %s is %s', (name, expected) => {
  expect(goFieldName(name)).toBe(expected);
});
