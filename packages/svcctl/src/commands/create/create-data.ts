import { isUtf8 } from 'node:buffer';
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { goEscaped, type JsonObject, setMember } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { createFlags, createObject, newMetadata, requireName } from '../../create-object.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError } from '../../io.ts';
import { objectAt, textAt } from '../../objects.ts';
import { compactJson } from '../../output/go-json.ts';
import type { Session } from '../../session.ts';
import { dataFlags, readData } from './data-sources.ts';

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
