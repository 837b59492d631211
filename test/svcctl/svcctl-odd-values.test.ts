import { expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { svcctlOn } from './svcctl-run.ts';

const map = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', labels: { app: 'c' } },
  data: { a: '1' },
};

/** Lines as kubectl's arguments; a word after two spaces is empty. */
const lines = (...texts: readonly string[]): [string][] => texts.map((text) => [text]);

printsLikeKubectl(
  'odd-values',
  lines(
    'create -f @files/cm.json',
    'create deployment d --image=i',
    // A selector without a value selects nothing.
    'delete cm --selector=',
    'delete cm --field-selector=',
    'delete cm --selector= --all --dry-run=client',
    'label cm --selector= x=y',
    'annotate cm --selector= x=y',
    'scale deploy --selector= --replicas=1',
    'set image deploy --selector= i=z',
    'rollout restart deploy --selector=',
    'wait cm --selector= --for=delete',
    'wait cm --for=create',
    'apply --server-side=false -f @files/cm.json --prune --selector=',
    'get cm c --selector= -o name',
    // Names that are empty or no part of a path.
    ...['cm', 'secret generic', 'secret docker-registry', 'sa', 'ns', 'quota', 'token'].map(
      (kind) => `create ${kind} `,
    ),
    'create pdb  --selector=a=b --min-available=1',
    'create role  --verb=get --resource=pods',
    'create clusterrole  --verb=get --resource=pods',
    'create rolebinding  --clusterrole=x',
    'run  --image=i',
    'get cm a%b',
    'delete cm ..',
    // Objects without names.
    'create --dry-run=client -f @files/generated.json',
    'create --dry-run=client -f @files/generated.json -o name',
    'delete -f @files/generated.json --wait=false',
    'get cm c -o name',
    'auth whoami -o name',
    'config view -o name',
    // Types without names.
    'create job j --from=x',
    'create job j --from=cronjob',
    'set env deploy/d --from=c',
    // How dependents are deleted.
    ...['nope', '', 'true'].map(
      (value) => `apply --server-side=false -f @files/cm.json --cascade=${value}`,
    ),
    'delete cm c --cascade=false --dry-run=client',
    'delete cm c --cascade= --dry-run=client',
    'replace -f @files/cm.json --cascade=nope',
    'replace -f @files/cm.json --force -o name',
    'replace -f @files/cm.json -o nope',
    // Raw paths.
    'create --raw nope -f @files/cm.json',
    'delete --raw nope',
    'replace --raw nope -f @files/cm.json',
    'get --raw nope',
    // Changes that are only listed.
    'label cm c --list app- x=y',
    'label cm c --list app=other',
    'label cm c --list app- nope-',
    'annotate cm c --list x=y',
    'get cm c -o jsonpath={.metadata.labels}',
    'annotate x=y --local',
    'label x=y --local',
    'annotate cm c x=y --local',
    'label cm c x=y --dry-run=server --local -f @files/cm.json',
    // Values of other flags.
    'run q --image=i --env=1X=2',
    'run q --image=i --annotations=x',
    'run q --image=i --port=-1',
    'edit cm c --validate=nope',
    'patch cm c -p {} --type=',
    'explain pod --api-version=v2',
    'debug p --image=i --env=x',
    'rollout undo deploy d --dry-run=nope',
    'certificate approve nope -o nope',
    'get cm --certificate-authority=@files/cm.json',
    'get cm --client-certificate=@files/cm.json --client-key=@files/cm.json',
  ),
  { files: { 'cm.json': map, 'generated.json': { ...map, metadata: { generateName: 'x-' } } } },
);

const on = svcctlOn('kubernetes');

test('CLIENT-1: run requires an image before a name', async () => {
  const { code, err } = await on.ctl('run');
  expect({ code, err }).toEqual({ code: 1, err: 'error: required flag(s) "image" not set\n' });
});
