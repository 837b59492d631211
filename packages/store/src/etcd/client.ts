import { basename } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import {
  type Clock,
  checkServerNames,
  ipVersion,
  itemAt,
  pause,
  returningErrors,
  trustOptions,
} from '@wheelhouse/machinery';
import { closedStore, StoreError } from '../contract.ts';
import {
  CallError,
  isUnavailable,
  statusCode,
  storeErrorOf,
  timedOut,
  wasNotExecuted,
} from './errors.ts';
import { type ClientIdentity, type ConnectTls, GrpcChannel } from './grpc-channel.ts';
import type { Method } from './protocol.ts';

/** The place of a server, as `GrpcChannel` connects to it. */
interface ServerAddress {
  readonly origin: string;
  /** The name or address that the server's certificate must have. */
  readonly host: string;
  readonly socketPath?: string;
}

/**
 * Returns the place that a server's URL names. A URL without a scheme, and `unix:`, use TLS if there
 * are certificates; `unixs:` always does, and the name in the certificate is then the name of the
 * socket. Throws StoreError `unavailable` for an invalid URL.
 */
export function addressOf(
  server: string,
  { hasCertificates }: { readonly hasCertificates: boolean },
): ServerAddress {
  const [, kind, socketPath = ''] = /^(unixs?):(?:\/\/)?(.+)$/.exec(server) ?? [];
  const socketName = basename(socketPath);
  if (socketName !== '') {
    const host = socketName.replace(/:[^:]*$/, '');
    const secure = hasCertificates || kind === 'unixs';
    return { origin: secure ? 'https://localhost' : 'http://localhost', host, socketPath };
  }
  const scheme = hasCertificates ? 'https' : 'http';
  const text = server.includes('://') ? server : `${scheme}://${server}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSupported = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isSupported || url.hostname === '') {
    const message = `the etcd server ${JSON.stringify(server)} is not a URL such as https://host:2379`;
    throw new StoreError({ code: 'unavailable', message });
  }
  return { origin: url.origin, host: url.hostname.replace(/^\[|\]$/g, '') };
}

/** How to reach etcd and authenticate to it. Certificates and keys are PEM. */
export interface EtcdConnection {
  /** URLs of the members, such as `https://host:2379` or `unix:///run/etcd.sock`: `addressOf`. */
  readonly servers: readonly string[];
  readonly ca?: Buffer;
  /** Called for each connection, so that a certificate can be renewed. */
  readonly identity?: () => ClientIdentity;
  /** Opens a TLS connection; Node's function by default. */
  readonly connectTls?: ConnectTls;
}

/** A call that stays open until it is closed or ends. */
export interface OpenStream {
  close(): void;
}

/**
 * Time between rounds of attempts, and time after the first failure in which they are made,
 * milliseconds.
 */
const retryMs = { pause: 25, longest: 2000 };

/**
 * Calls etcd's methods on one of its members and switches to the next one if that does not respond.
 * Every call ends within its timeout; all errors are StoreErrors.
 */
export class EtcdClient {
  readonly #members: readonly GrpcChannel[];
  readonly #clock: Clock;
  readonly #callTimeoutMs: number;
  /** Functions that abandon pending calls and streams. */
  readonly #pending = new Set<() => void>();
  #current = 0;
  /** When the first call failed since the last one that succeeded, in monotonic milliseconds. */
  #failingSinceMs: number | undefined;
  #closed = false;

  /** Throws StoreError `unavailable` for an invalid URL. */
  constructor(options: {
    readonly connection: EtcdConnection;
    readonly clock: Clock;
    readonly callTimeoutMs: number;
  }) {
    this.#clock = options.clock;
    this.#callTimeoutMs = options.callTimeoutMs;
    const { connection, clock } = options;
    this.#members = connection.servers.map((url) => memberOf(url, { connection, clock }));
  }

  /**
   * Calls a method. Repeats a call that no server has executed, or, if it is `repeatable` (a second
   * one changes nothing), that failed because a member is unavailable: on the other members, and
   * until some time after the first failure, in which a member restarts or a leader is elected.
   */
  async call<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    options: { readonly repeatable: boolean; readonly timeoutMs?: number },
  ): Promise<Response> {
    const deadline = this.#clock.monotonic() + (options.timeoutMs ?? this.#callTimeoutMs);
    const attemptsPerRound = Math.max(2, this.#members.length);
    for (let attempt = 1; ; attempt += 1) {
      if (this.#closed) throw closedStore();
      const member = this.#current;
      const timeoutMs = deadline - this.#clock.monotonic();
      try {
        const response = await this.#callOn(member, { method, request, timeoutMs });
        this.#failingSinceMs = undefined;
        return response;
      } catch (error) {
        if (this.#closed) throw closedStore();
        const mayRetry = options.repeatable ? isUnavailable(error) : wasNotExecuted(error);
        if (isUnavailable(error)) this.#switchFrom(member);
        if (mayRetry && attempt % attemptsPerRound !== 0) continue;
        if (!mayRetry || !this.#mayPause(deadline)) throw storeErrorOf(error);
        await pause(this.#clock, { ms: retryMs.pause });
      }
    }
  }

  /** Opens a bidirectional stream and sends one request. It ends with `closed` with the client. */
  stream<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    handlers: {
      readonly onResponse: (response: Response) => void;
      /** Called once; without an error if etcd ended the stream with status 0. */
      readonly onEnd: (error: StoreError | undefined) => void;
    },
  ): OpenStream {
    const member = this.#current;
    const channel = itemAt(this.#members, member);
    const message = method.request.encode(request);
    const end = (error: StoreError | undefined) => {
      this.#pending.delete(abandon);
      handlers.onEnd(error);
    };
    const abandon = () => end(closedStore());
    this.#pending.add(abandon);
    const call = channel.call(
      method.path,
      { message, more: 'open' },
      {
        onMessage: (bytes) => handlers.onResponse(method.response.decode(bytes)),
        onEnd: (error) => {
          if (isUnavailable(error)) this.#switchFrom(member);
          end(error === undefined ? undefined : storeErrorOf(error));
        },
      },
    );
    return {
      close: () => {
        this.#pending.delete(abandon);
        call.cancel();
      },
    };
  }

  close(): void {
    this.#closed = true;
    for (const member of this.#members) member.close();
    for (const abandon of [...this.#pending]) abandon();
  }

  #callOn<Request, Response>(
    member: number,
    call: {
      readonly method: Method<Request, Response>;
      readonly request: Partial<Request>;
      readonly timeoutMs: number;
    },
  ): Promise<Response> {
    const { method, request, timeoutMs } = call;
    const channel = itemAt(this.#members, member);
    const message = method.request.encode(request);
    return new Promise((resolve, reject) => {
      let response: Buffer | undefined;
      const settle = (failure: unknown) => {
        timer.stop();
        this.#pending.delete(abandon);
        try {
          if (failure !== undefined) reject(failure);
          else resolve(decodeResponse(method, response));
        } catch (error) {
          reject(error);
        }
      };
      const abandon = () => settle(closedStore());
      this.#pending.add(abandon);
      const timer = this.#clock.after(Math.max(0, timeoutMs), () => {
        running.cancel();
        this.#resetMember(member);
        settle(timedOut());
      });
      const running = channel.call(
        method.path,
        { message, more: 'none' },
        {
          onMessage: (bytes) => {
            response = bytes;
          },
          onEnd: settle,
        },
      );
    });
  }

  /**
   * Switches to another member and drops the connection to this one, which may be suspended, so
   * that watches move too.
   */
  #resetMember(member: number): void {
    if (this.#members.length === 1) return;
    this.#switchFrom(member);
    this.#members[member]?.reset();
  }

  /** Whether a failed call may be repeated after a pause. */
  #mayPause(deadline: number): boolean {
    const nowMs = this.#clock.monotonic();
    this.#failingSinceMs ??= nowMs;
    return nowMs + retryMs.pause < Math.min(deadline, this.#failingSinceMs + retryMs.longest);
  }

  /** Switches to the next member unless another call already has. */
  #switchFrom(member: number): void {
    if (this.#current === member) this.#current = (member + 1) % this.#members.length;
  }
}

/** Maximum size of a message from etcd, whose lists have no limit in bytes. */
const messageBytesMax = 2 ** 31 - 1;
/** Makes a member without a quorum fail a call rather than delay it. */
const metadata = { hasleader: 'true' };

function memberOf(
  server: string,
  options: { readonly connection: EtcdConnection; readonly clock: Clock },
): GrpcChannel {
  const { connection, clock } = options;
  const { ca, identity, connectTls } = connection;
  const hasCertificates = ca !== undefined || identity !== undefined;
  const { host, ...place } = addressOf(server, { hasCertificates });
  const tls: ConnectionOptions = {
    ...trustOptions(ca),
    // SNI cannot carry an address; the certificate is still verified against it.
    servername: ipVersion(host) === 0 ? host : '',
    checkServerIdentity: returningErrors((_name, certificate) =>
      checkServerNames(host, certificate),
    ),
  };
  const trust = { tls, connectTls, identity };
  return new GrpcChannel({ ...place, ...trust, metadata, messageBytesMax, clock });
}

/** Decodes a response. Throws if it is absent or malformed. */
function decodeResponse<Request, Response>(
  method: Method<Request, Response>,
  bytes: Buffer | undefined,
): Response {
  if (bytes !== undefined) return method.response.decode(bytes);
  throw new CallError({ code: statusCode.internal, details: 'etcd returned an empty response' });
}
