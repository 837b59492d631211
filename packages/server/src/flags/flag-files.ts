import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { pemBlocks } from '@wheelhouse/codec';
import { succeeds, systemErrorCode } from '@wheelhouse/machinery';
import { readSigningKey } from '../gates/authn/service-account-token.ts';
import { type FileContent, FlagError } from './flags.ts';

/** A file that the command line names. */
export interface NamedFile {
  readonly flag: string;
  readonly path: string;
  readonly content: FileContent;
  /** The certificate that this key belongs to, and its name in errors. */
  readonly keyOf?: { readonly path: string; readonly name: string };
}

/**
 * Checks files before anything is opened, so that errors name the flag. Throws a one-line FlagError
 * for the first file that is unreadable or has unexpected content.
 */
export function checkFiles(files: readonly NamedFile[]): void {
  for (const file of files) {
    try {
      accessSync(file.path, constants.R_OK);
    } catch (error) {
      throw fault(file, `open ${file.path}: ${wordsOf(error)}`);
    }
    if (statSync(file.path).isDirectory()) throw fault(file, `read ${file.path}: is a directory`);
    const problem = checks[file.content](file.path);
    if (problem !== undefined) throw fault(file, `${file.path}: ${problem}`);
    if (file.keyOf !== undefined && !fits(file.keyOf.path, file.path)) {
      throw fault(file, `${file.path}: the private key is not that of ${file.keyOf.name}`);
    }
  }
}

const fault = ({ flag }: Pick<NamedFile, 'flag'>, what: string) =>
  new FlagError(`--${flag}: ${what}`);

/** Failures in the wording of common programs. */
function wordsOf(error: unknown): string {
  const code = systemErrorCode(error);
  if (code === 'ENOENT') return 'no such file or directory';
  if (code === 'EACCES') return 'permission denied';
  if (code === 'ENOTDIR') return 'not a directory';
  return code ?? String(error);
}

/** Describes a problem with the content; undefined if there is none. */
type Check = (path: string) => string | undefined;

const checks: Readonly<Record<FileContent, Check>> = {
  any: () => undefined,
  certificates: (path) => {
    const blocks = blocksOf(path, 'CERTIFICATE');
    if (blocks.length === 0) return 'data does not contain any valid RSA or ECDSA certificates';
    return blocks.every((block) => succeeds(() => new X509Certificate(block)))
      ? undefined
      : 'data contains a malformed certificate';
  },
  'private key': (path) =>
    succeeds(() => createPrivateKey(readFileSync(path)))
      ? undefined
      : 'data does not contain a valid RSA or ECDSA private key',
  'signing key': (path) =>
    succeeds(() => readSigningKey(blocksOf(path, 'KEY').at(-1) ?? ''))
      ? undefined
      : 'data does not contain a valid RSA or ECDSA private key',
  keys: (path) => {
    const blocks = [...blocksOf(path, 'KEY'), ...blocksOf(path, 'CERTIFICATE')];
    return blocks.length > 0 && blocks.every((block) => succeeds(() => createPublicKey(block)))
      ? undefined
      : 'data does not contain any valid RSA or ECDSA public keys';
  },
};

function blocksOf(path: string, type: 'CERTIFICATE' | 'KEY'): readonly string[] {
  const blocks = pemBlocks(readFileSync(path, 'latin1'));
  return blocks.filter((block) => block.type.endsWith(type)).map(({ text }) => text);
}

function fits(certPath: string, keyPath: string): boolean {
  const pair = { cert: readFileSync(certPath), key: readFileSync(keyPath) };
  return succeeds(() => createSecureContext(pair));
}
