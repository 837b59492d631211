import { runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { changed, createWarnings, plainPod } from '../rules/rules.suite.ts';
import { pathWarnings } from './path-warnings.ts';

const item = (path: string) => ({ key: 'k', path });
const configMap = (...paths: string[]) => ({ name: 'c', items: paths.map(item) });
const own = 'volume "v" (ConfigMap "c"): overlapping paths:';
const projected = 'volume "v" (Projected)';

const rows: readonly (readonly [volume: object, ...warnings: string[]])[] = [
  [{ configMap: configMap('a', 'ab', 'b/a') }],
  [{ configMap: configMap('a', 'a') }, `${own} "a" with "a"`],
  [{ configMap: configMap('a/', 'a/b') }, `${own} "a/b" with "a"`],
  [
    { secret: { secretName: 's', items: [item('x/y'), item('x')] } },
    'volume "v" (Secret "s"): overlapping paths: "x" with "x/y"',
  ],
  [{ projected: { sources: [{}] } }, `${projected} has no sources provided`],
  [
    {
      projected: {
        sources: [{ configMap: configMap('token') }, { serviceAccountToken: { path: 'token' } }],
      },
    },
    `${projected}: overlapping paths: "token" (ServiceAccountToken) with "token" (ConfigMap "c")`,
  ],
];

test.each(rows.map(([volume, ...warnings]) => [volume, warnings] as const))(
  'files of one volume: %j',
  (volume, warnings) => {
    const pod = changed(plainPod(), { 'spec.volumes': [{ name: 'v', ...volume }] });
    expect(createWarnings(pod)).toEqual(warnings);
  },
);

test('files of trust bundles are compared, too', () => {
  const sources = [
    { clusterTrustBundle: { name: 'a', path: 'x' } },
    { clusterTrustBundle: { signerName: 'example.com/b', path: 'x/y' } },
    { configMap: { name: 'without-items' } },
  ];
  const signer = '"x/y" (ClusterTrustBundle "example.com/b")';
  const warnings = runInOnePiece(
    pathWarnings({ volumes: [{ name: 'v', projected: { sources } }] }),
  );
  expect(warnings).toEqual([
    `${projected}: overlapping paths: ${signer} with "x" (ClusterTrustBundle "a")`,
    `${projected}: overlapping paths: ${signer} with "x" (ClusterTrustBundle "a")`,
    `${projected}: overlapping paths: ${signer} with ${signer}`,
  ]);
});
