import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { startGrpcServer } from './grpc-server.ts';
import { rsaKeyPair } from './rsa-keys.ts';

/** A key of a test's signer. */
export interface SignerKey {
  readonly id: string;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
  readonly excluded?: boolean;
}

/** The answers of a test's signer, which a test may change at any time. */
export interface SignerState {
  keys: SignerKey[];
  /** Signs; its id need not be among the keys. */
  signing: SignerKey;
  /** Header members of tokens that extend or replace the valid ones. */
  header: Readonly<Record<string, unknown>>;
  signature: 'right' | 'empty';
  maxSeconds: number;
  refreshSeconds: number;
  timestamp: 'now' | 'absent';
  /** The status with which calls of a method fail. */
  failures: Map<string, number>;
}

const keysById = new Map<string, SignerKey>();

/** The numbers of the RSA keys of IDs that one test uses together; all others have the first. */
const rsaNumbers: Readonly<Record<string, number>> = { next: 1, second: 1, old: 1, stranger: 2 };

/** Returns a key pair, RSA unless a curve is named. Equal IDs and curves return the same pair. */
export function signerKey(id: string, curve?: 'P-384' | 'P-521'): SignerKey {
  const name = `${id} ${curve}`;
  const key = keysById.get(name) ?? madeKey(id, curve);
  keysById.set(name, key);
  return key;
}

function madeKey(id: string, curve: 'P-384' | 'P-521' | undefined): SignerKey {
  const pair =
    curve === undefined
      ? rsaKeyPair(rsaNumbers[id])
      : generateKeyPairSync('ec', { namedCurve: curve });
  return { id, ...pair };
}

/** Serves `v1alpha1.ExternalJWTSigner` on a Unix socket. */
export async function startTokenSigner(path: string) {
  const signing = signerKey('first');
  const state: SignerState = {
    keys: [signing],
    signing,
    header: {},
    signature: 'right',
    maxSeconds: 7200,
    refreshSeconds: 3600,
    timestamp: 'now',
    failures: new Map(),
  };
  /** The methods that were called, in order. */
  const calls: string[] = [];
  const server = await startGrpcServer(path, ({ method, body }) => {
    calls.push(method);
    const status = state.failures.get(method) ?? 0;
    return status === 0 ? messageOf(method, { state, body }) : { status, message: 'secret reason' };
  });
  return {
    state,
    calls,
    stop: () => server.stop(),
  };
}

function messageOf(
  method: string,
  { state, body }: { readonly state: SignerState; readonly body: Buffer },
): Buffer {
  if (method === 'Metadata') return number(1, state.maxSeconds);
  if (method === 'Sign') return signature(state, textIn(body));
  const keys = state.keys.map(({ id, publicKey, excluded = false }) =>
    bytes(
      1,
      Buffer.concat([
        bytes(1, Buffer.from(id)),
        bytes(2, publicKey.export({ type: 'spki', format: 'der' })),
        number(3, excluded ? 1 : 0),
      ]),
    ),
  );
  const seconds = Math.floor(Date.now() / 1000);
  const time = state.timestamp === 'now' ? [bytes(2, number(1, seconds))] : [];
  return Buffer.concat([...keys, ...time, number(3, state.refreshSeconds)]);
}

const algorithms = { secp384r1: ['ES384', 'sha384'], secp521r1: ['ES512', 'sha512'] } as const;

function signature(state: SignerState, claims: string): Buffer {
  const { id, privateKey } = state.signing;
  const { namedCurve } = privateKey.asymmetricKeyDetails ?? {};
  const isNamed = namedCurve === 'secp384r1' || namedCurve === 'secp521r1';
  const [alg, digest] = isNamed ? algorithms[namedCurve] : (['RS256', 'sha256'] as const);
  const header = encode({ alg, kid: id, typ: 'JWT', ...state.header });
  const signed = Buffer.from(`${header}.${claims}`);
  const made = sign(digest, signed, { key: privateKey, dsaEncoding: 'ieee-p1363' });
  const text = state.signature === 'empty' ? '' : made.toString('base64url');
  return Buffer.concat([bytes(1, Buffer.from(header)), bytes(2, Buffer.from(text))]);
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The text of a message with a single field. */
function textIn(message: Buffer): string {
  let at = 1;
  while (((message[at] ?? 0) & 0x80) !== 0) at += 1;
  return message.subarray(at + 1).toString();
}

function varint(value: number): Buffer {
  const digits: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) digits.push((rest % 0x80) | 0x80);
  return Buffer.from([...digits, rest]);
}

const number = (field: number, value: number) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field: number, value: Buffer) =>
  Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);
