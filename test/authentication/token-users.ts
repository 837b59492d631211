import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConfigChange, startTestServer, type TestServer } from '../support/harness.ts';

/** A user whose token is its name. */
export interface TokenUser {
  readonly name: string;
  readonly groups?: readonly string[];
}

/** Starts a server with a token file for the users; a user's token is the user's name. */
export async function startWithUsers(
  users: readonly TokenUser[],
  change: ConfigChange = {},
): Promise<TestServer> {
  const { path, remove } = temporaryFile(
    'tokens.csv',
    users.map((user) => `${lineOf(user)}\n`).join(''),
  );
  const authentication = { ...change.authentication, tokenFile: path };
  const server = await startTestServer({ ...change, authentication });
  return {
    ...server,
    async stop() {
      await server.stop();
      remove();
    },
  };
}

function lineOf({ name, groups }: TokenUser): string {
  const line = `${name},${name},uid-${name}`;
  return groups === undefined ? line : `${line},"${groups.join(',')}"`;
}

/** A file in its own directory. */
export function temporaryFile(name: string, text: string): { path: string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-file-'));
  const path = join(directory, name);
  writeFileSync(path, text);
  return { path, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

/** Request options that authenticate the user. */
export function as(user: string): { readonly token: string } {
  return { token: user };
}

export const rbacGroup = 'rbac.authorization.svc.io';
export const rbacPath = `/apis/${rbacGroup}/v1`;

/** A Role or ClusterRole for a request. */
export function roleOf(kind: 'Role' | 'ClusterRole', name: string, more: object) {
  return { apiVersion: `${rbacGroup}/v1`, kind, metadata: { name }, ...more };
}

/**
 * A RoleBinding or ClusterRoleBinding for a request; users are names, other subjects are objects.
 */
export function bindingOf(
  kind: 'RoleBinding' | 'ClusterRoleBinding',
  name: string,
  options: {
    readonly role: string;
    readonly roleKind?: 'Role' | 'ClusterRole';
    readonly subjects: readonly (string | object)[];
  },
) {
  const { role, roleKind = 'ClusterRole', subjects } = options;
  return {
    apiVersion: `${rbacGroup}/v1`,
    kind,
    metadata: { name },
    roleRef: { apiGroup: rbacGroup, kind: roleKind, name: role },
    subjects: subjects.map((subject) =>
      typeof subject === 'string' ? { kind: 'User', name: subject } : subject,
    ),
  };
}

/** Sends a POST that must answer 201. */
export async function mustCreate(
  server: Pick<TestServer, 'post'>,
  path: string,
  object: object,
): Promise<void> {
  const answer = await server.post(path, object);
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
}

/** Creates a ClusterRole with rules, and binds it to subjects in the whole cluster. */
export async function grantRules(
  server: Pick<TestServer, 'post'>,
  name: string,
  {
    rules,
    subjects,
  }: { readonly rules: readonly object[]; readonly subjects: (string | object)[] },
): Promise<void> {
  await mustCreate(server, `${rbacPath}/clusterroles`, roleOf('ClusterRole', name, { rules }));
  const binding = bindingOf('ClusterRoleBinding', name, { role: name, subjects });
  await mustCreate(server, `${rbacPath}/clusterrolebindings`, binding);
}
