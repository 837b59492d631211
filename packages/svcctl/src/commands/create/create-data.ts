import { isUtf8 } from 'node:buffer';
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import {
  configMapKey,
  cut,
  goEscaped,
  type JsonObject,
  setMember,
  strictEnvironmentName,
} from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { createFlags, createObject, newMetadata, requireName } from '../../create-object.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError } from '../../io.ts';
import { objectAt, textAt } from '../../objects.ts';
import { compactJson } from '../../output/go-json.ts';
import type { Session } from '../../session.ts';

/** Flags of commands that create objects with data. */
const dataFlags: readonly FlagSpec[] = [
  { name: 'from-literal', type: 'list', help: 'KEY=VALUE' },
  { name: 'from-file', type: 'items', help: '[KEY=]FILE, or a folder' },
  { name: 'from-env-file', type: 'items', help: 'A file of KEY=VALUE lines' },
];

/** The object that receives the data. */
interface DataTarget {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
  /** The default key of a file; its name if undefined. */
  readonly fileKey?: string;
}

/** Reads the data of the flags. Throws CliError. */
function readData(session: Session, target: DataTarget): Map<string, Buffer> {
  const data = new Map<string, Buffer>();
  const add = (key: string, value: Buffer) => {
    checkKey(key, target, data);
    data.set(key, value);
  };
  const literals = session.flags.list('from-literal');
  const files = session.flags.list('from-file');
  const environments = session.flags.list('from-env-file');
  if (environments.length > 0 && literals.length + files.length > 0) {
    throw new CliError('from-env-file cannot be combined with from-file or from-literal');
  }
  for (const source of files) {
    const { fileKey } = target;
    const whole = fileKey === undefined || source.includes('=') ? source : `${fileKey}=${source}`;
    for (const { key, file } of listFiles(session, whole)) {
      add(
        key,
        session.readFile(file, (reason) => reason),
      );
    }
  }
  for (const literal of literals) {
    const [key, value] = cut(literal, '=');
    if (key === '' || value === undefined) {
      throw new CliError(`invalid literal source ${literal}, expected key=value`);
    }
    add(key, Buffer.from(value));
  }
  for (const file of environments) {
    for (const [key, value] of readEnvironment(session, file, target)) add(key, value);
  }
  return data;
}

/** Throws a CliError for a key that is invalid or present. */
function checkKey(key: string, target: DataTarget, data: ReadonlyMap<string, Buffer>): void {
  const isMap = target.kind === 'ConfigMap';
  const faults = configMapKey(key);
  const quoted = JSON.stringify(key);
  if (faults.length > 0) {
    throw new CliError(
      isMap
        ? `${quoted} is not a valid key name for a ConfigMap: ${faults.join(',')}`
        : `${quoted} is not valid key name for a Secret ${faults.join(';')}`,
    );
  }
  const present = data.get(key);
  if (present === undefined) return;
  const field = isUtf8(present) ? 'Data' : 'BinaryData';
  const where = isMap ? ` in ${field} for ConfigMap ${JSON.stringify(target.name)}` : '';
  throw new CliError(
    `cannot add key ${isMap ? quoted : key}, another key by that name already exists${where}`,
  );
}

/** Finds the files of a source, `[KEY=]FILE` or a folder. Throws CliError. */
function listFiles(session: Session, source: string): { key: string; file: string }[] {
  const [first = '', second, ...more] = source.split('=');
  if (more.length > 0) throw new CliError("key names or file paths cannot contain '='");
  if (second !== undefined && first === '') {
    throw new CliError(`key name for file path ${second} missing`);
  }
  if (second === '') throw new CliError(`file path for key name ${first} missing`);
  const file = second ?? first;
  if (!isFolder(session, file)) {
    return [{ key: second === undefined ? path.basename(file) : first, file }];
  }
  if (second !== undefined) throw new CliError('cannot give a key name for a directory path');
  return readdirSync(session.path(file), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => ({ key: entry.name, file: path.join(file, entry.name) }))
    .sort((left, right) => (left.key < right.key ? -1 : 1));
}

function isFolder(session: Session, file: string): boolean {
  const stat = statSync(session.path(file), { throwIfNoEntry: false });
  if (stat === undefined) throw new CliError(`error reading ${file}: no such file or directory`);
  return stat.isDirectory();
}

/** Reads the variables of a file. Throws CliError. */
function readEnvironment(
  session: Session,
  file: string,
  { kind }: DataTarget,
): readonly (readonly [key: string, value: Buffer])[] {
  if (isFolder(session, file)) {
    const noun = kind === 'ConfigMap' ? 'config' : 'secret';
    throw new CliError(`env ${noun} file cannot be a directory`);
  }
  const text = session.readFile(file, (reason) => reason);
  const lines = text.toString('latin1').split('\n');
  return lines.flatMap((line, index) => {
    const bytes = Buffer.from(line.replace(/\r$/, ''), 'latin1');
    if (!isUtf8(bytes)) {
      throw new CliError(
        `env file ${file} contains invalid utf8 bytes at line ${index + 1}: [${[...bytes].join(' ')}]`,
      );
    }
    const variable = variableOf(bytes.toString(), index === 0 ? 'first' : 'other');
    if (variable === undefined) return [];
    const { key, value = session.io.env[key] ?? '' } = variable;
    return [[key, Buffer.from(value)] as const];
  });
}

/** Parses a line; undefined for an empty line or a comment. Throws CliError. */
function variableOf(
  line: string,
  position: 'first' | 'other',
): { readonly key: string; readonly value: string | undefined } | undefined {
  const hasMark = position === 'first' && line.startsWith('\ufeff');
  const text = (hasMark ? line.slice(1) : line).replace(/^[^\S\ufeff]+/, '');
  if (text === '' || text.startsWith('#')) return undefined;
  const [key = ''] = text.split('=', 1);
  const faults = strictEnvironmentName(key);
  if (faults.length > 0) {
    throw new CliError(`${JSON.stringify(key)} is not a valid key name: ${faults.join(';')}`);
  }
  return { key, value: key.length === text.length ? undefined : text.slice(key.length + 1) };
}

/** The flag that gives objects with different data different names. */
const hashFlag: FlagSpec = {
  name: 'append-hash',
  type: 'boolean',
  help: 'Append a hash of the data to the name',
};

/** With `--append-hash`, appends the hash of an object's data to its name, as kubectl does. */
function withHash(session: Session, object: JsonObject): JsonObject {
  if (!session.flags.boolean('append-hash')) return object;
  const name = textAt(object, 'metadata', 'name');
  const binaryData = objectAt(object, 'binaryData');
  const hashInput: JsonObject = {
    ...(Object.keys(binaryData).length === 0 ? {} : { binaryData }),
    data: objectAt(object, 'data'),
    kind: textAt(object, 'kind'),
    name,
    ...(object['kind'] === 'Secret' ? { type: textAt(object, 'type') } : {}),
  };
  const digest = createHash('sha256').update(compactJson(hashInput)).digest('hex').slice(0, 10);
  // Replace characters that could form words or look alike.
  const letters: Readonly<Record<string, string>> = { 0: 'g', 1: 'h', 3: 'k', a: 'm', e: 't' };
  const suffix = [...digest].map((letter) => letters[letter] ?? letter).join('');
  return { ...object, metadata: { ...objectAt(object, 'metadata'), name: `${name}-${suffix}` } };
}

function createConfigMap(session: Session, name: string): JsonObject {
  const data: JsonObject = {};
  const binaryData: JsonObject = {};
  for (const [key, value] of readData(session, { kind: 'ConfigMap', name })) {
    if (isUtf8(value)) setMember(data, key, value.toString());
    else setMember(binaryData, key, value.toString('base64'));
  }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: newMetadata(session, name),
    ...(Object.keys(data).length === 0 ? {} : { data }),
    ...(Object.keys(binaryData).length === 0 ? {} : { binaryData }),
  };
}

/**
 * Files whose bytes are no valid text become `binaryData`; `--append-hash` adds a hash of the
 * content to the name.
 */
export const createConfigMapCommand: Command = {
  name: 'configmap',
  aliases: ['cm'],
  summary: 'Create a config map from literals, files, or folders',
  usage: 'NAME [--from-literal=KEY=VALUE] [--from-file=[KEY=]SOURCE]',
  flags: [...createFlags, ...dataFlags, hashFlag],
  run: (session, args) =>
    createObject(session, withHash(session, createConfigMap(session, requireName(session, args))), {
      errorPrefix: 'failed to create configmap:',
    }),
};

async function createSecret(
  session: Session,
  content: {
    readonly name: string;
    readonly data: ReadonlyMap<string, Buffer>;
    readonly type?: string;
  },
): Promise<number> {
  const data: JsonObject = {};
  for (const [key, value] of content.data) setMember(data, key, value.toString('base64'));
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: newMetadata(session, content.name),
    ...(content.type === undefined ? {} : { type: content.type }),
    ...(content.data.size === 0 ? {} : { data }),
  };
  return createObject(session, withHash(session, secret), {
    errorPrefix: 'failed to create secret',
  });
}

const genericCommand: Command = {
  name: 'generic',
  summary: 'Create a secret from literals, files, or folders',
  usage: 'NAME [--type=TYPE] [--from-literal=KEY=VALUE] [--from-file=[KEY=]SOURCE]',
  flags: [
    ...createFlags,
    ...dataFlags,
    hashFlag,
    { name: 'type', type: 'text', help: 'The type of the secret' },
  ],
  run(session, args) {
    const name = requireName(session, args);
    const type = session.flags.text('type');
    const data = readData(session, { kind: 'Secret', name });
    return createSecret(session, { name, data, ...(type === undefined ? {} : { type }) });
  },
};

const tlsCommand: Command = {
  name: 'tls',
  summary: 'Create a TLS secret',
  usage: 'NAME --cert=FILE --key=FILE',
  flags: [
    ...createFlags,
    hashFlag,
    { name: 'cert', type: 'text', help: 'Certificate file in PEM' },
    { name: 'key', type: 'text', help: 'Private key file in PEM' },
  ],
  async run(session, args) {
    const name = requireName(session, args);
    const [cert = '', key = ''] = ['cert', 'key'].map((flag) => session.flags.text(flag));
    if (cert === '' || key === '') throw new CliError('key and cert must be specified');
    const pair = { certificate: readPem(session, cert), key: readPem(session, key) };
    checkPair(pair);
    const { label } = await session.dialect();
    const data = new Map([
      ['tls.crt', pair.certificate],
      ['tls.key', pair.key],
    ]);
    return createSecret(session, { name, data, type: label('tls') });
  },
};

const readPem = (session: Session, file: string): Buffer =>
  session.readFile(file, (why) => `Cannot read file ${file}, ${why}`);

/** Throws CliError unless the key belongs to the certificate. */
function checkPair(pair: { readonly certificate: Buffer; readonly key: Buffer }): void {
  const read = <T>(part: string, parse: () => T): T => {
    try {
      return parse();
    } catch {
      throw new CliError(`tls: failed to find any PEM data in ${part} input`);
    }
  };
  const certificate = read('certificate', () => new X509Certificate(pair.certificate));
  const key: KeyObject = read('key', () => createPrivateKey(pair.key));
  if (!certificate.checkPrivateKey(key)) {
    throw new CliError('tls: private key does not match public key');
  }
}

const dockerKey = '.dockerconfigjson';

const dockerCommand: Command = {
  name: 'docker-registry',
  summary: 'Create a secret for use with a Docker registry',
  usage: 'NAME --docker-username=USER --docker-password=PASSWORD [--docker-server=SERVER]',
  flags: [
    ...createFlags,
    hashFlag,
    { name: 'docker-username', type: 'text', help: 'User name for the registry' },
    { name: 'docker-password', type: 'text', help: 'Password for the registry' },
    { name: 'docker-email', type: 'text', help: 'Email address for the registry' },
    { name: 'docker-server', type: 'text', help: 'Address of the registry' },
    { name: 'from-file', type: 'items', help: `[${dockerKey}=]FILE` },
  ],
  async run(session, args) {
    const name = requireName(session, args);
    const { label } = await session.dialect();
    const data =
      session.flags.list('from-file').length > 0
        ? readData(session, { kind: 'Secret', name, fileKey: dockerKey })
        : new Map([[dockerKey, Buffer.from(dockerConfig(session))]]);
    return createSecret(session, { name, data, type: label('dockerconfigjson') });
  },
};

/** The configuration with its members in the order of kubectl. */
function dockerConfig({ flags }: Session): string {
  const [username = '', password = '', email = ''] = ['username', 'password', 'email'].map((part) =>
    flags.text(`docker-${part}`),
  );
  const server = flags.text('docker-server') ?? 'https://index.docker.io/v1/';
  if (username === '' || password === '' || server === '') {
    throw new CliError(
      'either --from-file or the combination of --docker-username, --docker-password and ' +
        '--docker-server is required',
    );
  }
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  const auths: JsonObject = {};
  setMember(auths, server, { username, password, ...(email === '' ? {} : { email }), auth });
  return goEscaped(JSON.stringify({ auths }));
}

/** `create secret docker-registry`, `generic`, and `tls`. */
export const createSecretCommand: Command = {
  name: 'secret',
  summary: 'Create a secret using a specified subcommand',
  usage: '(docker-registry | generic | tls)',
  subcommands: [dockerCommand, genericCommand, tlsCommand],
};
