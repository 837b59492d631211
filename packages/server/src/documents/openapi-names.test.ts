import { dialectOf } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { customDefinitionName, definitionName, operationGroup } from './openapi-names.ts';

const dialect = dialectOf('kubernetes');

test.each([
  ['core.v1.Pod', 'io.k8s.api.core.v1.Pod'],
  ['meta.v1.ObjectMeta', 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'],
  ['resource.Quantity', 'io.k8s.apimachinery.pkg.api.resource.Quantity'],
  ['resource.v1beta1.ResourceSlice', 'io.k8s.api.resource.v1beta1.ResourceSlice'],
  ['intstr.IntOrString', 'io.k8s.apimachinery.pkg.util.intstr.IntOrString'],
  ['version.Info', 'io.k8s.apimachinery.pkg.version.Info'],
  [
    'apiregistration.v1.APIService',
    'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService',
  ],
])('API-12: %s is named %s', (type, name) => {
  expect(definitionName(dialect, type)).toBe(name);
});

test('API-12: the name of a custom kind begins with its reversed group', () => {
  expect(customDefinitionName('stable.example.com', 'v1', 'Tab')).toBe('com.example.stable.v1.Tab');
});

test.each([
  ['', 'Core'],
  ['apps', 'Apps'],
  ['rbac.authorization.k8s.io', 'RbacAuthorization'],
  ['my-team.example.com', 'MyTeamExampleCom'],
])('API-12: the operation IDs of group "%s" contain %s', (group, name) => {
  expect(operationGroup(dialect, group)).toBe(name);
});
