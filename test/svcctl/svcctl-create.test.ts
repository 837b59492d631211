import { createPrivateKey, generateKeyPairSync, webcrypto } from 'node:crypto';
import type { Job } from '@wheelhouse/kinds/types/batch/v1';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import type { ResponseOf } from '../support/harness.ts';
import { issue } from '../support/issued-certificate.ts';
import { svcctlOn } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: create, run, expose, dialect %s', (dialectName) => {
  const dialect = dialectOf(dialectName);
  const on = svcctlOn(dialectName);
  const { ctl } = on;

  test("CLIENT-1: create uses the groups and types of the server's dialect", async () => {
    expect((await ctl('create ingress i --rule=a.b/x=s:80')).code).toBe(0);
    expect((await ctl('get ingress i -o jsonpath={.apiVersion}')).out).toBe(
      `${dialect.group('networking')}/v1`,
    );
    const name = `class-${on.namespace}`;
    expect((await ctl(`create priorityclass ${name} --value=5`)).out).toBe(
      `priorityclass.${dialect.group('scheduling')}/${name} created\n`,
    );
    const account = '--docker-username=u --docker-password=p';
    expect((await ctl(`create secret docker-registry d ${account}`)).code).toBe(0);
    expect((await ctl('get secret d -o jsonpath={.type}')).out).toBe(
      dialect.label('dockerconfigjson'),
    );
    const cronJob = 'create cronjob c --image=task:1 --schedule=@hourly -- run it';
    expect(
      (await on.home.run([...cronJob.split(' ').toSpliced(3, 0, '-n', on.namespace)])).code,
    ).toBe(0);
    expect((await ctl('create job j --from=cronjob/c')).out).toBe('job.batch/j created\n');
    const { body } = await on.server.get<ResponseOf<Job>>(
      `/apis/batch/v1/namespaces/${on.namespace}/jobs/j`,
    );
    expect(body.metadata.annotations).toMatchObject({
      [dialect.label('instantiate', 'cronjob')]: 'manual',
    });
    expect(body.spec.template.spec.containers[0].command).toEqual(['run', 'it']);
  });

  test('CLIENT-1: create secret tls checks that the key matches', async () => {
    const { certificate, keys } = await issue({ subject: 'CN=web' });
    const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
    const own = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    const cert = on.home.write('tls.crt', certificate.toString('pem'));
    const key = on.home.write('tls.key', String(own.export({ type: 'pkcs8', format: 'pem' })));
    const type = { type: 'pkcs8', format: 'pem' } as const;
    const otherKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(type);
    const wrong = on.home.write('other.key', String(otherKey));
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
    const usage = "\nSee 'svcctl create deployment -h' for help and examples";
    for (const [line, message] of [
      ['create deployment x', 'required flag(s) "image" not set'],
      ['create deployment --image=a', `exactly one NAME is required, got 0${usage}`],
      ['create deployment x y --image=a -- z', `exactly one NAME is required, got 2${usage}`],
      ['create cronjob c --image=task', 'required flag(s) "schedule" not set'],
      ['create service externalname e', 'required flag(s) "external-name" not set'],
      [
        'create nothing',
        "Unexpected args: [nothing]\nSee 'svcctl create -h' for help and examples",
      ],
      ['run q', 'required flag(s) "image" not set'],
      ['autoscale deploy web', 'required flag(s) "max" not set'],
    ] as const) {
      const { code, err } = await on.home.run(line);
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

/** Prints what a command would create, with defaults of the server. */
const shown = '--dry-run=server -o yaml';

printsLikeKubectl('create', [
  ['create deployment web --image=web:1'],
  ['create deployment web --image=web:1'],
  ['get deploy web -o jsonpath={.spec}{.metadata.labels}'],
  [`create deploy x --image=a/b:1,c@sha256:${'0'.repeat(64)} --port=80 -r 3 ${shown}`],
  [`create deployment x --image=web ${shown} -- sh -c true`],
  ['create deployment x --image=a --image=b -- sh'],
  [`create job j --image=task ${shown} -- sh -c true`],
  ['create job j --image=task'],
  ['create job j'],
  ['create job j --image=a --from=cronjob/x'],
  ['create job j --from=cronjob/nope'],
  ['create job j --from=deploy/web'],
  ['create cronjob c --image=task --schedule=@hourly'],
  [`create cj d --image=task --schedule=@daily --restart=Never ${shown} -- sh`],
  ['create job k --from=cronjob/c'],
  ['get job k -o jsonpath={.metadata.annotations}{.metadata.ownerReferences[0].name}'],
  ['create job k --from=cronjob/c -- sh'],
  [`create ingress i --rule=a.b/*=s:80,tls=t --rule=a.b/x=s:http ${shown}`],
  [`create ing i --class=c --default-backend=s:80 --annotation=k=v ${shown}`],
  [`create ingress i --rule=/p=s:80,tls --rule=h/=s:80,tls=t --rule=g/=s:80,tls=t ${shown}`],
  ['create ingress i --rule=a.b=s:80'],
  ['create ingress i --default-backend=s'],
  ['create ingress i --default-backend=s:80 --annotation=k'],
  ['create ingress i'],
  ['create ingress i --rule=a.b/x=s:80'],
  [`create pdb p --selector=app=x,tier=y --min-available=2 ${shown}`],
  [`create poddisruptionbudget p --selector=app=x --max-unavailable=50% ${shown}`],
  ['create pdb p --selector=app=x'],
  ['create pdb p --min-available=1'],
  ['create pdb p --selector=app=x --min-available=1 --max-unavailable=1'],
  ['create pdb p --selector=app=x --min-available=some'],
  ['create pdb p --selector=app=x --min-available=1'],
  ['create priorityclass @ns --value=1000 --description=d'],
  [`create pc @ns-x --value=7 --preemption-policy=Never ${shown}`],
  ['create priorityclass @ns --value=1'],
  ['get priorityclass @ns -o jsonpath={.value}{.description}{.preemptionPolicy}'],
  [`create quota q --hard=pods=3,cpu=1000m --scopes=BestEffort ${shown}`],
  ['create quota q --hard=pods=3'],
  ['create resourcequota q --hard=pods'],
  ['create quota r --scopes=a,,b'],
  ['create quota r --hard=pods=x'],
  ['create service clusterip s --tcp=80:8080,443'],
  ['get svc s -o jsonpath={.spec.ports}{.spec.selector}{.metadata.labels}'],
  ['create svc clusterip headless --clusterip=None'],
  ['create service nodeport n --tcp=80:http'],
  ['create service loadbalancer l --tcp=80'],
  ['get svc l -o jsonpath={.spec.type}{.spec.ports[0].name}'],
  ['create service externalname e --external-name=a.b'],
  ['create service externalname e --external-name=a_b'],
  ['create service clusterip t'],
  ['create service clusterip t --tcp=x'],
  ['create service clusterip t --tcp=70000'],
  ['create service clusterip t --tcp=80:70000'],
  ['create service clusterip t --tcp=80:Bad_Name'],
  ['create service clusterip s --tcp=80'],
  ['create secret docker-registry d --docker-username=u --docker-password=p --docker-email=e'],
  ['get secret d -o yaml'],
  ['create secret docker-registry d --docker-username=u'],
  ['create secret tls t --cert=nope --key=nope'],
  ['create secret tls t --cert=nope'],
  ['create secret generic g --from-literal=a=1 --append-hash'],
  ['create secret generic g --from-literal=a=<&> --type=x --append-hash'],
  ['create secret generic d --from-literal=a=1'],
  ['create cm m --from-literal=a=1 --append-hash'],
  ['create cm empty --append-hash'],
  ['create namespace @ns-more'],
  ['create ns @ns-more'],
  ['run p --image=web:1'],
  ['run p --image=web:1'],
  [`run q --image=web:1 --port=80 --env=A=1 --labels=a=b,c=d --annotations=k=v ${shown} -- x y`],
  [`run q --image=web:1 --restart=Never --command --image-pull-policy=Always ${shown} -- x y`],
  [`run q --image=web:1 --privileged --overrides={"spec":{"hostname":"h"}} ${shown}`],
  [
    `run q --image=w --override-type=json --overrides=[{"op":"remove","path":"/spec/dnsPolicy"}] ${shown}`,
  ],
  ['run q --image=w --override-type=odd --overrides={}'],
  ['run e --image=web:1 --port=80 --expose'],
  ['get svc e -o jsonpath={.spec.ports}{.spec.selector}'],
  ['run q --image=web:1 --expose'],
  ['run --image=x'],
  ['run q --image=Bad:'],
  ['run q --image=a -t'],
  ['run q --image=a --restart=Maybe'],
  ['run q --image=a --image-pull-policy=Maybe'],
  ['run q --image=a --env=A'],
  ['run q --image=a --labels=A'],
  ['run q --image=a --dry-run=client'],
  ['expose deploy web --port=80'],
  ['expose deploy web --port=80'],
  ['expose deploy web'],
  ['expose pod e'],
  ['expose pod e --name=e2'],
  ['expose svc s --name=s2'],
  ['get svc s2 -o jsonpath={.spec.ports}{.spec.selector}{.metadata.labels}'],
  [`expose svc s --name=s3 --protocol=UDP --target-port=http --type=NodePort ${shown}`],
  ['expose svc s --name=s4 --session-affinity=ClientIP --cluster-ip=None --labels=a=b'],
  ['expose svc s --name=s5 --session-affinity=Odd'],
  ['expose svc s --name=s5 --selector=x'],
  ['expose svc s --name=s5 --selector=x=y --external-ip=10.1.1.1 --dry-run=client'],
  ['expose deploy/web --name=v --port=a'],
  ['expose cm/x --port=80'],
  ['expose cronjob/c --port=80'],
  ['expose deploy nope --port=80'],
  ['expose deploy --port=80'],
  ['autoscale deploy web --max=5'],
  ['autoscale deploy web --max=5'],
  ['autoscale deploy/web --name=other --min=2 --max=5 --cpu-percent=80'],
  ['get hpa other -o yaml'],
  ['autoscale deploy web --min=6 --max=5'],
  ['autoscale deploy web --max=0'],
  ['autoscale deploy nope --max=5'],
  ['autoscale cm/kube-root-ca.crt --max=5'],
  ['autoscale deploy web --name=y --max=5 --dry-run=client'],
  ['autoscale deploy web --name=y --max=5 --dry-run=server'],
]);
