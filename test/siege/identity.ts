import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import { pemText } from '@wheelhouse/codec';
import type { TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import { type Random, randomOf } from '@wheelhouse/machinery';
import {
  type Attribute,
  authority,
  commonName,
  forgeCertificate,
  keyOf,
  nameOf,
  organization,
} from '../authentication/forged-certificates.ts';
import {
  bindingOf,
  mustCreate,
  rbacPath,
  roleOf,
  temporaryFile,
} from '../authentication/token-users.ts';
import {
  adminToken,
  type ResponseOf,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { type SiegePart, timeLimit } from './part.ts';

/** The identity that a credential establishes; `refused` for an invalid one. */
type Holder = { readonly user: string; readonly groups: readonly string[] } | 'refused';

interface Credential {
  readonly what: string;
  readonly holder: Holder;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly tls?: { readonly cert: string; readonly key: string };
}

const everyone = 'system:authenticated';
const anonymous: Holder = { user: 'system:anonymous', groups: ['system:unauthenticated'] };
const holderOf = (user: string, ...groups: string[]): Holder => ({
  user,
  groups: [...groups, everyone],
});
const masters = 'system:masters';

interface Operation {
  readonly what: string;
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly upgrade?: 'websocket';
  /** The permissions that a rule must grant, in addition to the administrators' group. */
  readonly needs: string;
}

const configMaps = '/api/v1/namespaces/default/configmaps';
const secrets = '/api/v1/namespaces/default/secrets';
const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'siege-' } };
const operations: readonly Operation[] = [
  { what: 'list', method: 'GET', path: configMaps, needs: 'list configmaps' },
  { what: 'create', method: 'POST', path: configMaps, body: configMap, needs: 'create configmaps' },
  { what: 'list Secrets', method: 'GET', path: secrets, needs: 'list secrets' },
  { what: 'list all Secrets', method: 'GET', path: '/api/v1/secrets', needs: 'list all secrets' },
  { what: 'get a Secret', method: 'GET', path: `${secrets}/kept`, needs: 'get secrets' },
  { what: 'head of a Secret', method: 'HEAD', path: `${secrets}/kept`, needs: 'get secrets' },
  { what: 'delete', method: 'DELETE', path: `${configMaps}/none`, needs: 'delete configmaps' },
  {
    what: 'watch over a WebSocket',
    method: 'GET',
    path: `${secrets}?watch=true&timeoutSeconds=1`,
    upgrade: 'websocket',
    needs: 'watch secrets',
  },
];

/** Written independently of the rules that the server gets, not derived from them. */
const granted: ReadonlyMap<string, readonly string[]> = new Map([
  ['user reader', ['list configmaps']],
  ['group writers', ['list configmaps', 'create configmaps']],
  ['user system:serviceaccount:default:robot', ['list secrets', 'get secrets', 'watch secrets']],
]);

function isGranted(holder: Holder, { needs }: Operation): boolean {
  if (holder === 'refused') return false;
  if (holder.groups.includes(masters)) return true;
  const subjects = [`user ${holder.user}`, ...holder.groups.map((group) => `group ${group}`)];
  return subjects.some((subject) => granted.get(subject)?.includes(needs) === true);
}

async function prepare(server: TestServer): Promise<{ robot: string }> {
  const bind = async (name: string, rules: readonly object[], subject: string | object) => {
    await mustCreate(server, `${rbacPath}/clusterroles`, roleOf('ClusterRole', name, { rules }));
    const binding = bindingOf('RoleBinding', name, { role: name, subjects: [subject] });
    await mustCreate(server, `${rbacPath}/namespaces/default/rolebindings`, binding);
  };
  const rule = (resource: string, ...verbs: string[]) => [
    { verbs, apiGroups: [''], resources: [resource] },
  ];
  const writers = { kind: 'Group', name: 'writers' };
  const robot = { kind: 'ServiceAccount', name: 'robot', namespace: 'default' };
  await bind('reads', rule('configmaps', 'list'), 'reader');
  await bind('writes', rule('configmaps', 'list', 'create'), writers);
  await bind('robots', rule('secrets', 'list', 'get', 'watch'), robot);
  const named = (kind: string, name: string) => ({ apiVersion: 'v1', kind, metadata: { name } });
  await mustCreate(server, secrets, named('Secret', 'kept'));
  const accounts = '/api/v1/namespaces/default/serviceaccounts';
  await mustCreate(server, accounts, named('ServiceAccount', 'robot'));
  const request = { apiVersion: 'authentication.svc.io/v1', kind: 'TokenRequest', spec: {} };
  const answer = await server.post<ResponseOf<TokenRequest>>(`${accounts}/robot/token`, request);
  return { robot: answer.body.status.token };
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const subject = (user: string, ...groups: (string | Attribute)[]) =>
  nameOf(
    { type: commonName, value: user },
    ...groups.map((group) =>
      typeof group === 'string' ? { type: organization, value: group } : group,
    ),
  );

/** A certificate that names the authority but is signed by another key. */
function forged(name: Buffer): Credential['tls'] {
  const issuer = authority.name;
  const made = forgeCertificate({ subject: name, issuer, key: 'client', signer: 'forger' });
  const key = keyOf('client').export({ type: 'pkcs8', format: 'pem' }).toString();
  return { cert: pemText('CERTIFICATE', made), key };
}

function credentialsOf(robot: string): readonly Credential[] {
  const account = 'system:serviceaccount:default:robot';
  const accounts = ['system:serviceaccounts', 'system:serviceaccounts:default'];
  const certificate = (what: string, name: Buffer, holder: Holder) => ({
    what: `certificate ${what}`,
    holder,
    tls: authority.issue(name),
  });
  const reader = bearer('reader');
  const asMasters = { 'impersonate-user': 'x', 'impersonate-group': masters };
  const remote = { 'x-remote-user': 'x', 'x-remote-group': masters };
  const shownToken = Buffer.from('reader').toString('base64url');
  return [
    { what: 'nothing', holder: anonymous },
    { what: 'an unknown token', holder: 'refused', headers: bearer('nobody') },
    { what: 'a token', holder: holderOf('reader'), headers: reader },
    {
      what: 'a token, other scheme',
      holder: anonymous,
      headers: { authorization: 'Basic reader' },
    },
    {
      what: 'two Authorization headers',
      holder: holderOf('reader'),
      headers: { authorization: [reader.authorization, `Bearer ${adminToken}`] },
    },
    {
      what: 'the administrator',
      holder: holderOf('system:admin', masters),
      headers: bearer(adminToken),
    },
    { what: 'a bound token', holder: holderOf(account, ...accounts), headers: bearer(robot) },
    {
      what: 'a token and a proxy’s headers',
      holder: holderOf('reader'),
      headers: { ...reader, ...remote },
    },
    { what: 'a proxy’s headers alone', holder: anonymous, headers: remote },
    {
      what: 'impersonation that is not granted',
      holder: 'refused',
      headers: { ...reader, ...asMasters },
    },
    {
      what: 'impersonation by the administrator',
      holder: holderOf('reader'),
      headers: { ...bearer(adminToken), 'impersonate-user': ['reader', 'system:admin'] },
    },
    certificate('of a reader', subject('reader'), holderOf('reader')),
    certificate('of a writer', subject('w', 'writers'), holderOf('w', 'writers')),
    certificate('of an administrator', subject('a', masters), holderOf('a', masters)),
    certificate('with a BOM', subject('b', `\ufeff${masters}`), holderOf('b', `\ufeff${masters}`)),
    certificate('with a list', subject('l', `a,${masters}`), holderOf('l', `a,${masters}`)),
    certificate('in capitals', subject('c', 'System:Masters'), holderOf('c', 'System:Masters')),
    certificate('with a space', subject('s', `${masters} `), holderOf('s', `${masters} `)),
    certificate('with a NUL', subject('n', `${masters}\0`), 'refused'),
    certificate(
      'of two names',
      nameOf({ type: commonName, value: 'reader' }, { type: commonName, value: 'x' }),
      'refused',
    ),
    certificate(
      'in Latin-1',
      subject('t', { type: organization, tag: 0x14, value: Buffer.from([0xe4]) }),
      'refused',
    ),
    {
      what: 'certificate of no authority',
      holder: 'refused',
      ...{ tls: forged(subject('f', masters)) },
    },
    {
      what: 'a protocol’s token',
      holder: anonymous,
      headers: {
        'sec-websocket-protocol': `base64url.bearer.authorization.svc.io.${shownToken}, x`,
      },
    },
  ].map((credential) => credential as Credential);
}

/** Mutates a token so that it is nobody's credential. */
function mutatedToken(token: string, random: Random): Credential {
  const at = random.below(token.length);
  const replacement = random.pick(
    [...'!=.-_AzQ+/ ~'].filter((character) => character !== token[at]),
  );
  const changed = random.pick([
    `${token}${random.pick(['=', '==', '!', '.', 'A', '~'])}`,
    `${token.slice(0, at)}${token.slice(at + 1)}`,
    `${token.slice(0, at)}${replacement === ' ' ? '~' : replacement}${token.slice(at + 1)}`,
  ]);
  return { what: `changed token ${changed}`, holder: 'refused', headers: bearer(changed) };
}

/** Another spelling of a path, which may lead to the same path or nowhere, but never grant more. */
function spelt(path: string, random: Random): string {
  return random.pick([
    path,
    path,
    path,
    `/${path}`,
    path.replace('/api/', '/api//'),
    path.replace('/v1/', '/v1/./'),
    path.replace('/v1/', '/x/../v1/'),
    path.replace('secrets', 'secret%73'),
    path.replace('/v1/', '/%76%31/'),
    path.replace('default', 'Default'),
  ]);
}

async function send(
  url: string,
  { credential, operation, path }: { credential: Credential; operation: Operation; path: string },
): Promise<{ readonly status: number; readonly body: string }> {
  const upgrade = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    'sec-websocket-version': '13',
    origin: url,
  };
  const request = https.request(url, {
    path,
    method: operation.method,
    agent: false,
    rejectUnauthorized: false,
    ...credential.tls,
    headers: {
      'content-type': 'application/json',
      ...(operation.upgrade === undefined ? {} : upgrade),
      ...credential.headers,
    },
  });
  request.end(operation.body === undefined ? undefined : JSON.stringify(operation.body));
  const upgraded = once(request, 'upgrade').then(([response, socket]) => {
    socket.destroy();
    return { status: (response as IncomingMessage).statusCode ?? 0, body: '' };
  });
  const answered = once(request, 'response').then(async ([response]) => {
    const message = response as IncomingMessage;
    return { status: message.statusCode ?? 0, body: await text(message) };
  });
  const settled = Promise.race([answered, upgraded]);
  for (const outcome of [answered, upgraded]) outcome.catch(() => {});
  return settled;
}

const reviewed: Operation = {
  what: 'review',
  method: 'POST',
  path: '/apis/authentication.svc.io/v1/selfsubjectreviews',
  body: { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' },
  needs: '',
};

/** Checks that the server derives exactly the identity that the credential names. */
async function checkIdentity(url: string, credential: Credential): Promise<void> {
  const { holder } = credential;
  const { status, body } = await send(url, {
    credential,
    operation: reviewed,
    path: reviewed.path,
  });
  const isNobody = holder === 'refused' || holder === anonymous;
  if (isNobody !== (status !== 201)) throw new Error(`${credential.what}: ${status} ${body}`);
  if (isNobody) return;
  const { username, groups } = JSON.parse(body).status.userInfo;
  const found = JSON.stringify([username, [...groups].sort()]);
  const wanted = JSON.stringify([holder.user, [...holder.groups].sort()]);
  if (found !== wanted) throw new Error(`${credential.what}: ${found} instead of ${wanted}`);
}

/** A round is one request of a random user type, spelling, verb, and path. */
export const identityPart: SiegePart = {
  name: 'identity',
  summary: 'Credentials of all kinds against the role matrix; a round is one request.',
  defaultRounds: 20_000,
  async run(options) {
    const { seed, rounds, log } = options;
    const random = randomOf(seed);
    const isOver = timeLimit(options);
    const bundle = temporaryFile('ca.crt', authority.pem());
    const tokens = temporaryFile('tokens.csv', 'reader,reader,uid-reader\n');
    const server = await startTestServer({
      authentication: { clientCaFile: bundle.path, tokenFile: tokens.path },
    });
    const statuses = new Map<number, number>();
    let round = 0;
    try {
      const { robot } = await prepare(server);
      const credentials = credentialsOf(robot);
      for (const credential of credentials) await checkIdentity(server.url, credential);
      for (; round < rounds && !isOver(); round++) {
        const isMutated = random.chance(0.3);
        const credential = isMutated ? mutatedToken(robot, random) : random.pick(credentials);
        const operation = random.pick(operations);
        const path = spelt(operation.path, random);
        const { status } = await send(server.url, { credential, operation, path });
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        const may = isGranted(credential.holder, operation);
        const isDone = (status >= 200 && status < 300) || status === 101;
        const isDenied = status === 401 || status === 403;
        if ((!may && isDone) || (may && path === operation.path && isDenied)) {
          const what = `${credential.what}: ${operation.what} ${path} was answered ${status}`;
          throw new Error(`seed ${seed}, round ${round}: ${what}`);
        }
        if (round % 1000 === 999) log(`${round + 1} requests`);
      }
    } finally {
      await server.stop();
      bundle.remove();
      tokens.remove();
    }
    const answers = [...statuses].sort(([left], [right]) => left - right);
    return {
      requests: round,
      statuses: answers.map(([status, count]) => `${status}: ${count}`).join(', '),
    };
  },
};
