import { generateKeyPairSync, sign } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { as, bindingOf, mustCreate, rbacPath, roleOf } from '../authentication/token-users.ts';

import { withUsers } from '../support/with-server.ts';

function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const length = content.length < 0x80 ? [content.length] : [0x81, content.length];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

/** A request for a certificate of an organization, as PEM. */
function signedRequest(organization: string, stringTag = 0x0c): string {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const utf16 = Buffer.from(organization, 'utf16le').swap16();
  const value = stringTag === 0x1e ? utf16 : Buffer.from(organization);
  const type = der(0x06, Buffer.from('55040a', 'hex'));
  const name = der(0x30, der(0x31, der(0x30, type, der(stringTag, value))));
  const key = publicKey.export({ type: 'spki', format: 'der' });
  const info = der(0x30, der(0x02, Buffer.from([0])), name, key, der(0xa0));
  const algorithm = der(0x30, der(0x06, Buffer.from('2b6570', 'hex')));
  const signature = Buffer.concat([Buffer.from([0]), sign(null, info, privateKey)]);
  const body = der(0x30, info, algorithm, der(0x03, signature)).toString('base64');
  return `-----BEGIN CERTIFICATE REQUEST-----\n${body}\n-----END CERTIFICATE REQUEST-----\n`;
}

describe('certificates', async () => {
  const server = await withUsers([{ name: 'approver' }, { name: 'stranger' }]);
  beforeAll(async () => {
    const requests = ['certificatesigningrequests/approval', 'certificatesigningrequests/status'];
    const rules = [
      { verbs: ['update', 'patch'], apiGroups: ['certificates.svc.io'], resources: requests },
    ];
    const role = roleOf('ClusterRole', 'writes', { rules });
    await mustCreate(server, `${rbacPath}/clusterroles`, role);
    const subjects = ['approver', 'stranger'];
    const writes = bindingOf('ClusterRoleBinding', 'writes', { role: 'writes', subjects });
    await mustCreate(server, `${rbacPath}/clusterrolebindings`, writes);
    const signing = {
      verbs: ['approve', 'sign'],
      apiGroups: ['certificates.svc.io'],
      resources: ['signers'],
      resourceNames: ['example.com/*'],
    };
    const signs = roleOf('ClusterRole', 'signs', { rules: [signing] });
    await mustCreate(server, `${rbacPath}/clusterroles`, signs);
    const binding = bindingOf('ClusterRoleBinding', 'signs', {
      role: 'signs',
      subjects: ['approver'],
    });
    await mustCreate(server, `${rbacPath}/clusterrolebindings`, binding);
    await mustCreate(server, path, certificateRequest('r', 'example.com/x'));
  });
  const path = '/apis/certificates.svc.io/v1/certificatesigningrequests';

  function certificateRequest(
    name: string,
    signerName: string,
    request: string = signedRequest('others'),
  ) {
    return {
      apiVersion: 'certificates.svc.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name },
      spec: {
        signerName,
        request: Buffer.from(request).toString('base64'),
        usages: ['client auth'],
      },
    };
  }

  test('ADM-1: only a user who may approve for the signer approves or denies a request', async () => {
    const conditions = [{ type: 'Approved', status: 'True', reason: 'x' }];
    const approve = (user: string) =>
      server.patch(`${path}/r/approval`, { status: { conditions } }, 'merge', as(user));
    const answer = await approve('stranger');
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      'certificatesigningrequests.certificates.svc.io "r" is forbidden: user not permitted to approve requests with signerName "example.com/x"',
    );
    expect((await approve('approver')).status).toBe(200);
  });

  test('ADM-1: only a user who may sign for the signer issues a certificate', async () => {
    const value = { type: 'Failed', status: 'True', reason: 'x' };
    const more = [{ op: 'add', path: '/status/conditions/-', value }];
    const fail = (user: string) => server.patch(`${path}/r/status`, more, 'json', as(user));
    const answer = await fail('stranger');
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      'certificatesigningrequests.certificates.svc.io "r" is forbidden: user not permitted to sign requests with signerName "example.com/x"',
    );
    expect((await fail('approver')).status).toBe(200);
  });

  test.each([0x0c, 0x13, 0x1e])(
    'ADM-1: a request for a client certificate of system:masters is refused, string type %d',
    async (tag) => {
      const signer = 'svc.io/kube-apiserver-client';
      const masters = signedRequest('system:masters', tag);
      const answer = await server.post(path, certificateRequest('m', signer, masters));
      expect(answer.status, answer.text).toBe(403);
      expect(answer.body.message).toBe(
        `certificatesigningrequests.certificates.svc.io "m" is forbidden: use of ${signer} signer with system:masters group is not allowed`,
      );
      const harmless = await server.post(path, certificateRequest(`o${tag}`, signer));
      expect(harmless.status).toBe(201);
      const elsewhere = certificateRequest(`e${tag}`, 'example.com/x', masters);
      expect((await server.post(path, elsewhere)).status).toBe(201);
    },
  );
});
