import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type JsonObject, setMember, systemErrorCode } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { dataFlags, dataOf, hashFlag, withHash } from '../../create-data.ts';
import { createFlags, createObject, metadataIn, onlyName } from '../../create-object.ts';
import { CliError } from '../../io.ts';
import { serverDialect } from '../../server-dialect.ts';
import type { Session } from '../../session.ts';

async function createSecret(
  session: Session,
  of: { readonly name: string; readonly data: ReadonlyMap<string, Buffer>; readonly type?: string },
): Promise<number> {
  const data: JsonObject = {};
  for (const [key, value] of of.data) setMember(data, key, value.toString('base64'));
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadataIn(session, of.name),
    ...(of.type === undefined ? {} : { type: of.type }),
    ...(of.data.size === 0 ? {} : { data }),
  };
  return createObject(session, withHash(session, secret), { doing: 'failed to create secret' });
}

const genericCommand: Command = {
  name: 'generic',
  summary: 'Create a secret from literals, files or folders',
  usage: 'NAME [--type=TYPE] [--from-literal=KEY=VALUE] [--from-file=[KEY=]SOURCE]',
  flags: [
    ...createFlags,
    ...dataFlags,
    hashFlag,
    { name: 'type', type: 'text', help: 'The type of the secret' },
  ],
  run(session, args) {
    const name = onlyName(args);
    const type = session.flags.text('type');
    const data = dataOf(session);
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
    { name: 'cert', type: 'text', help: 'File of the certificate, PEM' },
    { name: 'key', type: 'text', help: 'File of its private key, PEM' },
  ],
  async run(session, args) {
    const name = onlyName(args);
    const [cert = '', key = ''] = ['cert', 'key'].map((flag) => session.flags.text(flag));
    if (cert === '' || key === '') throw new CliError('key and cert must be specified');
    const pair = { certificate: readPart(session, cert), key: readPart(session, key) };
    checkPair(pair);
    const { label } = await serverDialect(session);
    const data = new Map([
      ['tls.crt', pair.certificate],
      ['tls.key', pair.key],
    ]);
    return createSecret(session, { name, data, type: label('tls') });
  },
};

function readPart(session: Session, file: string): Buffer {
  try {
    return readFileSync(session.path(file));
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    const why = code === 'ENOENT' ? 'no such file or directory' : code;
    throw new CliError(`Cannot read file ${file}, open ${file}: ${why}`);
  }
}

/** Throws CliError unless the key is the certificate's. */
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
    { name: 'docker-server', type: 'text', help: 'The registry' },
    { name: 'from-file', type: 'list', help: `[${dockerKey}=]FILE` },
  ],
  async run(session, args) {
    const name = onlyName(args);
    const { label } = await serverDialect(session);
    const data =
      session.flags.list('from-file').length > 0
        ? dataOf(session, { fileKey: dockerKey })
        : new Map([[dockerKey, Buffer.from(JSON.stringify(dockerConfig(session)))]]);
    return createSecret(session, { name, data, type: label('dockerconfigjson') });
  },
};

function dockerConfig({ flags }: Session): JsonObject {
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
  return { auths };
}

/** `create secret docker-registry`, `generic`, and `tls`. */
export const createSecretCommand: Command = {
  name: 'secret',
  summary: 'Create a secret using a specified subcommand',
  subcommands: [dockerCommand, genericCommand, tlsCommand],
};
