import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { eventually, freshNamespace, selecting } from '../support/harness.ts';
import { kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';

const crontabs = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'crontabs.schema.example.com' },
  spec: {
    group: 'schema.example.com',
    scope: 'Namespaced',
    names: { plural: 'crontabs', kind: 'CronTab' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                description: 'What is wanted.',
                properties: { replicas: { type: 'integer' }, image: { type: 'string' } },
              },
            },
          },
        },
      },
    ],
  },
};

describe.skipIf(!kubectlIsHere)('an unmodified kubectl', async () => {
  const server = await withServer({ dialect: 'kubernetes' });
  const client = untilEnd(kubectlOf(server));
  const namespace = await freshNamespace(server);
  beforeAll(async () => {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    expect((await server.post(path, crontabs)).status).toBe(201);
    await eventually(async () => {
      const { status } = await server.get('/apis/schema.example.com/v1/crontabs');
      return status === 200;
    }, 'the custom kind');
  });

  const kubectl = (args: readonly string[], input?: ApiObject) =>
    client.run([`--namespace=${namespace}`, ...args], {
      stdin: input === undefined ? '' : JSON.stringify(input),
    });

  const deployment = (name: string, spec: object = {}) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: { ...selecting({ app: name }, { name: 'main', image: 'example.com/main:1' }), ...spec },
  });

  test('API-12: create, apply, and server-side apply find what they need', async () => {
    const created = await kubectl(['create', '-f', '-'], deployment('one'));
    expect(created).toMatchObject({ code: 0, stdout: 'deployment.apps/one created\n' });
    const applied = await kubectl(['apply', '-f', '-'], deployment('two', { replicas: 2 }));
    expect(applied).toMatchObject({ code: 0, stdout: 'deployment.apps/two created\n' });
    const again = await kubectl(['apply', '-f', '-'], deployment('two', { replicas: 2 }));
    expect(again).toMatchObject({ code: 0, stdout: 'deployment.apps/two unchanged\n' });
    const changed = await kubectl(['apply', '-f', '-'], deployment('two', { replicas: 3 }));
    expect(changed).toMatchObject({ code: 0, stdout: 'deployment.apps/two configured\n' });
    const onServer = await kubectl(
      ['apply', '--server-side', '-f', '-'],
      deployment('three', { replicas: 1 }),
    );
    expect(onServer).toMatchObject({
      code: 0,
      stdout: 'deployment.apps/three serverside-applied\n',
    });
  });

  test('API-12: strict validation happens on the server', async () => {
    const args = ['create', '--dry-run=server', '--validate=strict', '-f', '-'];
    const wrong = await kubectl(args, deployment('four', { replicaz: 1 }));
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain('strict decoding error: unknown field "spec.replicaz"');
    const right = await kubectl(args, deployment('four'));
    expect(right).toMatchObject({
      code: 0,
      stdout: 'deployment.apps/four created (server dry run)\n',
    });
  });

  test('API-12: explain describes built-in and custom kinds', async () => {
    const spec = await kubectl(['explain', 'deployment.spec', '--recursive']);
    expect(spec).toMatchObject({ code: 0, stderr: '' });
    expect(spec.stdout).toContain('FIELD: spec <DeploymentSpec>');
    expect(spec.stdout).toMatch(/containerPort\t<integer> -required-/);
    const tab = await kubectl(['explain', 'crontabs.spec', '--recursive']);
    expect(tab.stdout).toContain('What is wanted.');
    expect(tab.stdout).toMatch(/replicas\t<integer>/);
  });

  test('API-12: custom objects are created, applied, and validated', async () => {
    const tab = (spec: JsonObject) => ({
      apiVersion: 'schema.example.com/v1',
      kind: 'CronTab',
      metadata: { name: 'tab' },
      spec,
    });
    const wrong = await kubectl(['create', '-f', '-'], tab({ image: 'a', bad: 1 }));
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain('strict decoding error: unknown field "spec.bad"');
    const out = (text: string) => ({ code: 0, stdout: `crontab.schema.example.com/tab ${text}\n` });
    const created = await kubectl(['apply', '-f', '-'], tab({ image: 'a' }));
    expect(created).toMatchObject(out('created'));
    const changed = await kubectl(['apply', '-f', '-'], tab({ image: 'b' }));
    expect(changed).toMatchObject(out('configured'));
    const args = ['apply', '--server-side', '--force-conflicts', '-f', '-'];
    const onServer = await kubectl(args, tab({ replicas: 2 }));
    expect(onServer).toMatchObject(out('serverside-applied'));
  });

  test('API-12: OpenAPI v2 clients read the protobuf form', async () => {
    const args = ['explain', 'pod.spec.containers.ports', '--output=plaintext-openapiv2'];
    const answer = await kubectl(args);
    expect(answer).toMatchObject({ code: 0, stderr: '' });
    expect(answer.stdout).toContain('RESOURCE: ports <[]Object>');
    expect(answer.stdout).toMatch(/containerPort\t<integer> -required-/);
  });
});
