import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { configMap, startTestServer, type TestServer } from './harness.ts';
import { type Received, startWebhookService, type WebhookService } from './webhook-service.ts';

const version = 'authorization.svc.io/v1';
const allowed = { kind: 'SubjectAccessReview', apiVersion: version, status: { allowed: true } };
let service: WebhookService;
let server: TestServer;

beforeAll(async () => {
  service = await startWebhookService();
  const tokenFile = service.file(
    'tokens.csv',
    'amy-token,amy,uid-1,"dev,<ops>"\nbob-token,bob,2\n',
  );
  server = await startTestServer({
    authorizationModes: ['Webhook', 'RBAC'],
    authorization: {
      webhook: {
        configFile: service.kubeconfig({ user: { token: 'my-secret' } }),
        version: 'v1',
        authorizedTtlMs: 0,
        unauthorizedTtlMs: 0,
      },
    },
    authentication: { tokenFile },
  });
});
afterAll(async () => {
  await server?.stop();
  await service?.stop();
});
beforeEach(() => {
  service.received.length = 0;
  service.answer = () => allowed;
});

const last = (): Received => {
  const found = service.received.at(-1);
  if (found === undefined) throw new Error('nothing was received');
  return found;
};

describe('reviews', () => {
  test('AUTHZ-2: a webhook is asked about a resource, byte for byte as upstream asks', async () => {
    const path = '/apis/apps/v1/namespaces/y/deployments/web/status';
    const answer = await server.get(path, { token: 'amy-token' });
    expect(answer.status).toBe(404);
    expect(last().method).toBe('POST');
    expect(last().path).toBe('/authorize?timeout=30s');
    expect(last().headers.authorization).toBe('Bearer my-secret');
    expect(last().text).toBe(
      '{"kind":"SubjectAccessReview","apiVersion":"authorization.svc.io/v1",' +
        '"metadata":{"creationTimestamp":null},"spec":{"resourceAttributes":{"namespace":"y",' +
        '"verb":"get","group":"apps","version":"v1","resource":"deployments",' +
        '"subresource":"status","name":"web"},"user":"amy",' +
        '"groups":["dev","\\u003cops\\u003e","system:authenticated"],"uid":"uid-1"},' +
        '"status":{"allowed":false}}\n',
    );
  });
});
