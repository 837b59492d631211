import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { type Clock, checkServerNames, itemAt, trustOptions, verdict } from '@wheelhouse/machinery';
import { closedStore, StoreError } from '../contract.ts';
import { CallError, isPassing, statusCode, storeErrorOf, timedOut, wasNotSent } from './errors.ts';
import { type ClientIdentity, GrpcChannel } from './grpc-channel.ts';
import type { Method } from './protocol.ts';

/**
 * The `host:port` of a server's URL and whether it uses TLS. A URL without a scheme uses TLS if
 * there are certificates. Throws StoreError `unavailable` for an invalid URL.
 */
export function addressOf(
  server: string,
  { hasCertificates }: { readonly hasCertificates: boolean },
): { readonly host: string; readonly address: string; readonly secure: boolean } {
  const scheme = hasCertificates ? 'https' : 'http';
  const text = server.includes('://') ? server : `${scheme}://${server}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isKnown = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isKnown || url.hostname === '') {
    const message = `the etcd server ${JSON.stringify(server)} is no URL such as https://host:2379`;
    throw new StoreError({ code: 'unavailable', message });
  }
  const secure = url.protocol === 'https:';
  const port = url.port === '' ? (secure ? '443' : '80') : url.port;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return { host, address: `${url.hostname}:${port}`, secure };
}

/** How to reach etcd and authenticate to it. Certificates and keys are PEM. */
export interface EtcdConnection {
  /**
   * URLs of the members, such as `https://host:2379`; without a scheme, TLS if there is any PEM.
   */
  readonly servers: readonly string[];
  readonly ca?: Buffer;
  /** Called for each connection, so that a certificate can be renewed. */
  readonly identity?: () => ClientIdentity;
}

/** A call that stays open until it is closed or ends. */
export interface OpenStream {
  close(): void;
}

/**
 * Calls etcd's methods on one of its members and switches to the next one if that does not respond.
 * Every call ends in time; all errors are StoreErrors.
 */
export class EtcdClient {
  readonly #members: readonly GrpcChannel[];
  readonly #clock: Clock;
  readonly #callTimeoutMs: number;
  /** Functions that abandon pending calls. */
  readonly #pending = new Set<() => void>();
  #current = 0;
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
   * Calls once, and once more if the first call cannot have had an effect. `repeatable` says that a
   * second call changes nothing.
   */
  async call<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    options: { readonly repeatable: boolean; readonly timeoutMs?: number },
  ): Promise<Response> {
    const deadline = this.#clock.monotonic() + (options.timeoutMs ?? this.#callTimeoutMs);
    const attemptsMax = Math.max(2, this.#members.length);
    for (let attempt = 1; ; attempt += 1) {
      if (this.#closed) throw closedStore();
      const member = this.#current;
      const timeoutMs = deadline - this.#clock.monotonic();
      try {
        return await this.#callOn(member, { method, request, timeoutMs });
      } catch (error) {
        if (this.#closed) throw closedStore();
        const again = options.repeatable ? isPassing(error) : wasNotSent(error);
        if (isPassing(error)) this.#leave(member);
        if (!again || attempt >= attemptsMax) throw storeErrorOf(error);
      }
    }
  }

  /** Opens a bidirectional stream and sends one request; ends at the latest with the client. */
  stream<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    handlers: {
      readonly onResponse: (response: Response) => void;
      /** Called once; without an error if etcd ended the stream regularly. */
      readonly onEnd: (error: StoreError | undefined) => void;
    },
  ): OpenStream {
    const member = this.#current;
    const channel = itemAt(this.#members, member);
    const message = method.request.encode(request);
    const call = channel.call(
      method.path,
      { message, more: 'open' },
      {
        onMessage: (bytes) => handlers.onResponse(method.response.decode(bytes)),
        onEnd: (error) => {
          if (isPassing(error)) this.#leave(member);
          handlers.onEnd(error === undefined ? undefined : storeErrorOf(error));
        },
      },
    );
    return { close: () => call.cancel() };
  }

  close(): void {
    this.#closed = true;
    for (const member of this.#members) member.close();
    for (const giveUp of [...this.#pending]) giveUp();
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
      let answer: Buffer | undefined;
      const settle = (failure: unknown) => {
        timer.stop();
        this.#pending.delete(giveUp);
        try {
          if (failure !== undefined) reject(failure);
          else resolve(answerOf(method, answer));
        } catch (error) {
          reject(error);
        }
      };
      const giveUp = () => settle(closedStore());
      this.#pending.add(giveUp);
      const timer = this.#clock.after(Math.max(0, timeoutMs), () => {
        running.cancel();
        this.#abandon(member);
        settle(timedOut());
      });
      const running = channel.call(
        method.path,
        { message, more: 'none' },
        {
          onMessage: (bytes) => {
            answer = bytes;
          },
          onEnd: settle,
        },
      );
    });
  }

  /**
   * A member that does not respond may be suspended along with its connection. Another one may do
   * better, also for watches.
   */
  #abandon(member: number): void {
    if (this.#members.length === 1) return;
    this.#leave(member);
    this.#members[member]?.reset();
  }

  /** Switches to the next member unless another call already has. */
  #leave(member: number): void {
    if (this.#current === member) this.#current = (member + 1) % this.#members.length;
  }
}

/** A member without a quorum must say so rather than keep the caller waiting. */
const metadata = { hasleader: 'true' };

function memberOf(
  server: string,
  of: { readonly connection: EtcdConnection; readonly clock: Clock },
): GrpcChannel {
  const { connection, clock } = of;
  const { ca, identity } = connection;
  const hasCertificates = ca !== undefined || identity !== undefined;
  const { host, address, secure } = addressOf(server, { hasCertificates });
  const tls: ConnectionOptions = {
    ...trustOptions(ca),
    // SNI cannot carry an address; the certificate is still verified against it.
    ...(isIP(host) === 0 ? {} : { servername: '' }),
    checkServerIdentity: verdict((_name, shown) => checkServerNames(host, shown)),
  };
  const origin = `${secure ? 'https' : 'http'}://${address}`;
  return new GrpcChannel({ origin, metadata, tls, identity, clock });
}

/** Throws if it cannot be parsed. */
function answerOf<Request, Response>(
  method: Method<Request, Response>,
  bytes: Buffer | undefined,
): Response {
  if (bytes !== undefined) return method.response.decode(bytes);
  throw new CallError({ code: statusCode.internal, details: 'etcd has answered nothing' });
}
