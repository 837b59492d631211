import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { bytes, many, message, nested, one, text } from '@wheelhouse/store';
import { type GrpcAnswer, type GrpcCall, startGrpcServer } from './grpc-server.ts';

/** The behavior of a test's KMS plugin, which a test may change at any time. */
export interface KmsPluginState {
  /** The name of the key that Encrypt uses; Decrypt uses the key that the request names. */
  keyId: string;
  /** The key that Status names; by default `keyId`. */
  statusKeyId: string | undefined;
  version: string;
  healthz: string;
  /** The annotations that Encrypt returns; Decrypt requires `key.kms.example.com`. */
  annotations: { key: string; value: Buffer }[];
  /** Replaces the result of Decrypt. */
  plaintext: Buffer | undefined;
  /** Replaces the result of Encrypt. */
  ciphertext: Buffer | undefined;
  /** The gRPC status with which calls fail, by method. */
  failures: Map<string, number>;
  /** Called before each answer, which waits until the promise resolves. */
  pace: (method: string) => Promise<void>;
}

const annotation = nested(message({ key: one(1, text), value: one(2, bytes) }));
const status = message({ version: one(1, text), healthz: one(2, text), keyId: one(3, text) });
const v2 = {
  encryptRequest: message({ plaintext: one(1, bytes), uid: one(2, text) }),
  encryptResponse: message({
    ciphertext: one(1, bytes),
    keyId: one(2, text),
    annotations: many(3, annotation),
  }),
  decryptRequest: message({
    ciphertext: one(1, bytes),
    uid: one(2, text),
    keyId: one(3, text),
    annotations: many(4, annotation),
  }),
  decryptResponse: message({ plaintext: one(1, bytes) }),
};
const v1 = {
  version: message({ version: one(1, text), name: one(2, text), runtime: one(3, text) }),
  request: message({ version: one(1, text), data: one(2, bytes) }),
  response: message({ data: one(1, bytes) }),
};

/** Creates a cipher with a key that is derived from the key's name. */
function pluginCipher(keyId: string) {
  const key = Buffer.alloc(32, keyId);
  return {
    encrypt(plain: Buffer): Buffer {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    },
    decrypt(sealed: Buffer): Buffer {
      const cipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12));
      cipher.setAuthTag(sealed.subarray(-16));
      return Buffer.concat([cipher.update(sealed.subarray(12, -16)), cipher.final()]);
    },
  };
}

/**
 * Serves both versions of the KMS API on a Unix socket.
 * @param path the path of the socket; `@` begins an abstract name
 */
export async function startKmsPlugin(path: string) {
  const state: KmsPluginState = {
    keyId: 'first',
    statusKeyId: undefined,
    version: 'v2',
    healthz: 'ok',
    annotations: [{ key: 'key.kms.example.com', value: Buffer.from('tag') }],
    plaintext: undefined,
    ciphertext: undefined,
    failures: new Map(),
    pace: () => Promise.resolve(),
  };
  let running = 0;
  let mostRunning = 0;
  /** The paths of the calls so far, such as `/v2.KeyManagementService/Status`. */
  const calls: string[] = [];
  const listening = () =>
    startGrpcServer(path.replace(/^@/, '\0'), async (call) => {
      calls.push(call.path);
      running += 1;
      mostRunning = Math.max(mostRunning, running);
      await state.pace(call.method);
      running -= 1;
      return answerTo(call, state);
    });
  let server = await listening();
  return {
    state,
    calls,
    /** Returns the number of calls of a method. */
    count: (method: string) => calls.filter((called) => called.endsWith(`/${method}`)).length,
    /** Maximum number of concurrent calls. */
    get mostRunning() {
      return mostRunning;
    },
    /** Number of servers that are connected now. */
    get connections() {
      return server.connections;
    },
    stop: () => server.stop(),
    async start() {
      server = await listening();
    },
  };
}

export type KmsPlugin = Awaited<ReturnType<typeof startKmsPlugin>>;

function answerTo({ path, method, body }: GrpcCall, state: KmsPluginState): GrpcAnswer {
  const failure = state.failures.get(method);
  if (failure !== undefined) return { status: failure, message: 'the vault is sealed' };
  try {
    const answer = path.startsWith('/v2.') ? answerV2 : answerV1;
    return answer(method, { body, state });
  } catch (error) {
    return { status: 13, message: String(error) };
  }
}

function answerV2(
  method: string,
  { body, state }: { readonly body: Buffer; readonly state: KmsPluginState },
): GrpcAnswer {
  const { version, healthz, keyId, annotations } = state;
  if (method === 'Status') {
    return status.encode({ version, healthz, keyId: state.statusKeyId ?? keyId });
  }
  if (method === 'Encrypt') {
    const { plaintext } = v2.encryptRequest.decode(body);
    const ciphertext = state.ciphertext ?? pluginCipher(keyId).encrypt(plaintext);
    return v2.encryptResponse.encode({ ciphertext, keyId, annotations });
  }
  const request = v2.decryptRequest.decode(body);
  if (!request.annotations.some(({ key }) => key === 'key.kms.example.com')) {
    return { status: 3, message: 'the annotation is missing' };
  }
  const plaintext = state.plaintext ?? pluginCipher(request.keyId).decrypt(request.ciphertext);
  return v2.decryptResponse.encode({ plaintext });
}

function answerV1(
  method: string,
  { body, state }: { readonly body: Buffer; readonly state: KmsPluginState },
): GrpcAnswer {
  if (method === 'Version') {
    return v1.version.encode({ version: 'v1beta1', name: 'test', runtime: '1' });
  }
  const { data } = v1.request.decode(body);
  const cipher = pluginCipher('v1');
  if (method === 'Encrypt') return v1.response.encode({ data: cipher.encrypt(data) });
  return v1.response.encode({ data: state.plaintext ?? cipher.decrypt(data) });
}
