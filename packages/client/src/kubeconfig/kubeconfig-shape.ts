import { isObject, type JsonObject, type JsonValue, member } from '@wheelhouse/machinery';

/** What a member of a kubeconfig must be; a member that is not listed may be anything. */
export type Shape =
  | 'text'
  | 'boolean'
  | 'base64'
  | { readonly listOf: Shape }
  | { readonly mapOf: Shape }
  | { readonly members: Readonly<Record<string, Shape>> };

const extensions: Shape = { listOf: { members: { name: 'text' } } };

const cluster: Shape = {
  members: {
    server: 'text',
    'tls-server-name': 'text',
    'insecure-skip-tls-verify': 'boolean',
    'certificate-authority': 'text',
    'certificate-authority-data': 'base64',
    'proxy-url': 'text',
    'disable-compression': 'boolean',
    extensions,
  },
};

const exec: Shape = {
  members: {
    command: 'text',
    args: { listOf: 'text' },
    env: { listOf: { members: { name: 'text', value: 'text' } } },
    apiVersion: 'text',
    installHint: 'text',
    provideClusterInfo: 'boolean',
    interactiveMode: 'text',
  },
};

const user: Shape = {
  members: {
    'client-certificate': 'text',
    'client-certificate-data': 'base64',
    'client-key': 'text',
    'client-key-data': 'base64',
    token: 'text',
    tokenFile: 'text',
    as: 'text',
    'as-uid': 'text',
    'as-groups': { listOf: 'text' },
    'as-user-extra': { mapOf: { listOf: 'text' } },
    username: 'text',
    password: 'text',
    'auth-provider': { members: { name: 'text', config: { mapOf: 'text' } } },
    exec,
    extensions,
  },
};

const context: Shape = {
  members: { cluster: 'text', user: 'text', namespace: 'text', extensions },
};

const named = (key: string, body: Shape): Shape => ({
  listOf: { members: { name: 'text', [key]: body } },
});

/** The shape of a whole file. */
export const kubeconfigShape: Shape = {
  members: {
    apiVersion: 'text',
    kind: 'text',
    'current-context': 'text',
    preferences: { members: { colors: 'boolean', extensions } },
    clusters: named('cluster', cluster),
    users: named('user', user),
    contexts: named('context', context),
    extensions,
  },
};

/** What is wrong with a kubeconfig's document; undefined when it can be used. Quotes no value. */
export function shapeError(document: JsonObject): string | undefined {
  const { kind, apiVersion } = document;
  if ((kind ?? 'Config') !== 'Config' || (apiVersion || 'v1') !== 'v1') {
    return (
      `no kind ${JSON.stringify(kind ?? 'Config')} is registered for version ` +
      JSON.stringify(apiVersion || 'v1')
    );
  }
  return misfit(document, kubeconfigShape, '') ?? duplicateName(document);
}

/** The first misfit below a value; null counts as absent. */
function misfit(value: JsonValue, shape: Shape, path: string): string | undefined {
  if (value === null) return undefined;
  if (typeof shape === 'string') return scalarMisfit(value, shape, path);
  if ('listOf' in shape) {
    if (!Array.isArray(value)) return `${path} must be a list`;
    return first(value, (one, at) => misfit(one, shape.listOf, `${path}[${at}]`));
  }
  if (!isObject(value)) return `${path} must be a mapping`;
  const prefix = path === '' ? '' : `${path}.`;
  return first(Object.keys(value), (name) => {
    const wanted = 'mapOf' in shape ? shape.mapOf : ownShape(shape.members, name);
    const found = member(value, name) ?? null;
    return wanted === undefined ? undefined : misfit(found, wanted, prefix + name);
  });
}

function ownShape(members: Readonly<Record<string, Shape>>, name: string): Shape | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

function scalarMisfit(
  value: JsonValue,
  shape: 'text' | 'boolean' | 'base64',
  path: string,
): string | undefined {
  if (shape === 'boolean') {
    return typeof value === 'boolean' ? undefined : `${path} must be true or false`;
  }
  if (typeof value !== 'string') return `${path} must be a string`;
  if (shape === 'text') return undefined;
  const wrong = value.replace(/[\r\n]/g, '').search(/[^A-Za-z0-9+/=]/);
  if (wrong >= 0) return `${path}: illegal base64 data at input byte ${wrong}`;
  const isWhole = /^[A-Za-z0-9+/]*={0,2}$/.test(value.replace(/[\r\n]/g, ''));
  const length = value.replace(/[\r\n]/g, '').length;
  return isWhole && length % 4 === 0 ? undefined : `${path}: illegal base64 data`;
}

function first<T>(
  items: readonly T[],
  look: (item: T, at: number) => string | undefined,
): string | undefined {
  for (const [at, item] of items.entries()) {
    const found = look(item, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

function duplicateName(document: JsonObject): string | undefined {
  return first(['clusters', 'users', 'contexts'], (list) => {
    const entries = member(document, list);
    if (!Array.isArray(entries)) return undefined;
    const seen = new Set<JsonValue | undefined>();
    return first(entries, (entry) => {
      const name = isObject(entry) ? (member(entry, 'name') ?? '') : '';
      if (seen.has(name)) return `duplicate name ${JSON.stringify(name)} in ${list}`;
      seen.add(name);
      return undefined;
    });
  });
}
