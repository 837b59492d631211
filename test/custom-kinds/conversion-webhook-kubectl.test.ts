import { describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';
import { conversionBy, multiVersions, startConversionService } from './conversion-service.ts';
import { definitionOf } from './custom-kinds.ts';

const group = 'multi.example.com';

describe.skipIf(!kubectlIsHere)('kubectl with webhook conversion', async () => {
  const service = await untilEnd(startConversionService());
  const server = await withServer({ dialect: 'kubernetes' });
  const kubectl = untilEnd(kubectlOf(server));

  /** Runs a command that must succeed; returns its output. */
  async function run(args: string, input?: object): Promise<string> {
    const stdin = input === undefined ? {} : { stdin: JSON.stringify(input) };
    const { code, stdout, stderr } = await kubectl.run(args.split(' '), stdin);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    return stdout.trim();
  }

  test('CRD-4: objects are applied, read, and awaited in any version', async () => {
    const conversion = conversionBy(service);
    const names = { plural: 'multis', kind: 'Multi', versions: multiVersions() };
    const definition = definitionOf({ group, ...names, more: { conversion } });
    await run('create -f -', { ...definition, apiVersion: 'apiextensions.k8s.io/v1' });
    await run(`wait --for=condition=Established crd/multis.${group}`);
    const metadata = { name: 'a', namespace: 'default' };
    const object = { apiVersion: `${group}/v1beta2`, kind: 'Multi', metadata };
    await run('apply -f -', { ...object, spec: { contentv2: { key: 'one' } } });
    await run('apply -f -', { ...object, spec: { contentv2: { key: 'two' } } });
    await run('apply --server-side --force-conflicts -f -', {
      ...object,
      spec: { contentv2: { key: 'two' }, numv2: { num1: 5 } },
    });
    const key = '-o jsonpath={.spec.content.key}{.spec.num.num1}';
    expect(await run(`get multis.v1beta1.${group} a ${key}`)).toBe('two5');
    await run(`label multis.v1alpha1.${group} a colour=red`);
    const patch = '{"spec":{"contentv2":{"key":"three"}}}';
    await run(`patch multis.v1beta2.${group} a --type=merge -p ${patch}`);
    await run(`wait --for=jsonpath={.spec.content.key}=three multis.v1beta1.${group}/a`);
    await run(`scale multis.v1beta2.${group} a --replicas=7`);
    const first = '-o jsonpath={.items[0].spec.content.key}{.items[0].spec.num.num1}';
    expect(await run(`get multis.v1alpha1.${group} -l colour=red ${first}`)).toBe('three7');
    const rows = await run(`get multis.v1beta2.${group}`);
    expect(rows).toMatch(/^NAME +KEY\na +three$/);
    await run(`delete multis.v1beta2.${group} a`);
    expect(service.received[0]?.body.apiVersion).toBe('apiextensions.k8s.io/v1');
  }, 60_000);
});
