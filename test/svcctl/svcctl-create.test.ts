import { createPrivateKey, generateKeyPairSync, webcrypto } from 'node:crypto';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freshNamespace, startTestServer, type TestServer } from '../support/harness.ts';
import { issue } from '../support/issued-certificate.ts';
import { type SvcctlHome, svcctlFor } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: create, run, expose, dialect %s', (dialectName) => {
  const dialect = dialectOf(dialectName);
  let server: TestServer;
  let home: SvcctlHome;
  let namespace: string;
  const ctl = (line: string | readonly string[]) => home.runIn(namespace, line);
  beforeAll(async () => {
    server = await startTestServer({ dialect: dialectName });
    home = svcctlFor(server);
  });
  beforeEach(async () => {
    namespace = await freshNamespace(server);
  });
  afterAll(async () => {
    home.remove();
    await server.stop();
  });

  test("CLIENT-1: create writes groups and types of the server's dialect", async () => {
    expect((await ctl('create ingress i --rule=a.b/x=s:80')).code).toBe(0);
    expect((await ctl('get ingress i -o jsonpath={.apiVersion}')).out).toBe(
      `${dialect.group('networking')}/v1`,
    );
    const name = `class-${namespace}`;
    expect((await ctl(`create priorityclass ${name} --value=5`)).out).toBe(
      `priorityclass.${dialect.group('scheduling')}/${name} created\n`,
    );
    const account = '--docker-username=u --docker-password=p';
    expect((await ctl(`create secret docker-registry d ${account}`)).code).toBe(0);
    expect((await ctl('get secret d -o jsonpath={.type}')).out).toBe(
      dialect.label('dockerconfigjson'),
    );
    const cronJob = 'create cronjob c --image=task:1 --schedule=@hourly -- run it';
    expect((await home.run([...cronJob.split(' ').toSpliced(3, 0, '-n', namespace)])).code).toBe(0);
    expect((await ctl('create job j --from=cronjob/c')).out).toBe('job.batch/j created\n');
    const { body } = await server.get(`/apis/batch/v1/namespaces/${namespace}/jobs/j`);
    expect(body.metadata.annotations).toMatchObject({
      [dialect.label('instantiate', 'cronjob')]: 'manual',
    });
    expect(body.spec.template.spec.containers[0].command).toEqual(['run', 'it']);
  });

  test('CLIENT-1: create secret tls checks that the key matches', async () => {
    const { certificate, keys } = await issue({ subject: 'CN=web' });
    const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
    const own = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    const cert = home.write('tls.crt', certificate.toString('pem'));
    const key = home.write('tls.key', String(own.export({ type: 'pkcs8', format: 'pem' })));
    const type = { type: 'pkcs8', format: 'pem' } as const;
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(type);
    const wrong = home.write('other.key', String(other));
    expect((await ctl(`create secret tls t --cert=${cert} --key=${key}`)).out).toBe(
      'secret/t created\n',
    );
    for (const [line, message] of [
      [`--cert=${cert} --key=${wrong}`, 'tls: private key does not match public key'],
      [`--cert=${key} --key=${key}`, 'tls: failed to find any PEM data in certificate input'],
      [`--cert=${cert} --key=${cert}`, 'tls: failed to find any PEM data in key input'],
    ] as const) {
      const { code, err } = await ctl(`create secret tls u ${line}`);
      expect({ line, code, err }).toEqual({ line, code: 1, err: `error: ${message}\n` });
    }
  });

  test('CLIENT-1: generators report what is missing and what the server refuses', async () => {
    for (const [line, message] of [
      ['create deployment x', 'required flag(s) "image" not set'],
      ['create deployment --image=a', 'exactly one NAME is required, got 0'],
      ['create deployment x y --image=a -- z', 'exactly one NAME is required, got 2'],
      [
        'create deployment x --image=a --replicas=some',
        'invalid argument "some" for "--replicas" flag',
      ],
      ['create cronjob c --image=task', 'required flag(s) "schedule" not set'],
      ['create service externalname e', 'required flag(s) "external-name" not set'],
      ['create nothing', 'must specify one of -f and -k'],
      ['run q', 'required flag(s) "image" not set'],
      ['run q --image', 'flag needs an argument: --image'],
      ['autoscale deploy web', 'required flag(s) "max" not set'],
    ] as const) {
      const { code, err } = await home.run(line);
      expect({ line, code, err }).toEqual({ line, code: 1, err: `error: ${message}\n` });
    }
    expect((await ctl('run q --image=a --rm')).err).toContain(
      'error: --rm should only be used for attached containers',
    );
    const refused = await ctl('create deployment x --image=a --as=nobody');
    expect(refused.err).toContain(
      'error: failed to create deployment: deployments.apps is forbidden',
    );
    const unserved = await ctl('expose nope/x --port=80');
    expect(unserved.err).toBe('error: the server doesn\'t have a resource type "nope"\n');
  });

  test('CLIENT-1: an image whose name is not a valid container name gets one', async () => {
    const line = 'create deployment x --image=r.io/my_app.v1:2';
    expect((await ctl(line)).code).toBe(0);
    const { out } = await ctl('get deploy x -o jsonpath={.spec.template.spec.containers[0].name}');
    expect(out).toMatch(/^my-app-v1-[a-z0-9]{5}$/);
  });
});
