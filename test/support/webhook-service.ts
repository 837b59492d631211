import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UserInfo } from '@wheelhouse/kinds/types/authentication/v1';
import type { GroupVersionKind, GroupVersionResource } from '@wheelhouse/kinds/types/meta/v1';
import { systemClock } from '@wheelhouse/machinery';
import { ensureServingCertificates } from '@wheelhouse/server/testing';
import type { ResponseBody } from './harness.ts';
import { listenLocally, trackConnections } from './local-server.ts';
import { rememberCertificates, reuseCertificates } from './shared-certificates.ts';

/** The request of a review of admission or conversion. Every member may be absent. */
export type ReviewRequest = {
  uid: string;
  operation: string;
  name: string;
  namespace: string;
  kind: GroupVersionKind;
  requestKind: GroupVersionKind;
  resource: GroupVersionResource;
  subResource: string;
  object: ResponseBody;
  oldObject: ResponseBody;
  options: ResponseBody;
  userInfo: UserInfo;
  dryRun: boolean;
  /** Of a conversion. */
  objects: ResponseBody[];
  desiredAPIVersion: string;
};

/** The body of a call: a review, or a list of audit events. */
export interface ReceivedBody extends ResponseBody {
  request: ReviewRequest;
}

/** One received call. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: ReceivedBody;
}

/** The reply of the service: a body, a status without one, or a failure. */
export type Reply = object | PlainReply | 'stall' | 'reset';

interface PlainReply {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly text?: string | Buffer;
  /** How the body ends after the text instead of normally: not at all, or with the connection. */
  readonly end?: 'stall' | 'reset';
}

const isPlain = (reply: object): reply is PlainReply =>
  'status' in reply && typeof reply.status === 'number';

/** A webhook over TLS in this process, with a folder for configuration files. */
export interface WebhookService {
  readonly url: string;
  readonly directory: string;
  /** The CA that issued its certificate, in PEM. */
  readonly caPem: string;
  /** The service's own certificate without that of the CA, in PEM. */
  readonly leafPem: string;
  readonly received: Received[];
  /** The reply to later calls, or a promise of it. */
  answer: (call: Received) => Reply;
  /** Called if a client disconnects before it is answered. */
  onGone: () => void;
  /** Writes a kubeconfig for this service; returns its path. */
  kubeconfig(change?: { readonly user?: object; readonly cluster?: object; path?: string }): string;
  /** Writes a file in the folder; returns its path. */
  file(name: string, text: string): string;
  stop(): Promise<void>;
}

/**
 * Starts a service on a free port of the loopback interface, with a certificate for these hosts.
 * Within a process, services for the same hosts share their certificate and its CA.
 */
export async function startWebhookService(
  hosts: readonly string[] = ['127.0.0.1'],
): Promise<WebhookService> {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-webhook-'));
  const certDir = join(directory, 'certificates');
  const name = `webhook for ${hosts}`;
  reuseCertificates(certDir, name);
  const certificates = ensureServingCertificates({ certDir, hosts, clock: systemClock });
  rememberCertificates(certDir, name);
  const received: Received[] = [];
  const stalled = new Set<ServerResponse>();
  const server = https.createServer(
    { cert: certificates.certificatePem, key: certificates.keyPem },
    (request, response) => {
      const chunks: Buffer[] = [];
      response.on('close', () => {
        if (!response.writableEnded) service.onGone();
      });
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const call: Received = {
          method: request.method ?? '',
          path: request.url ?? '',
          headers: request.headers,
          text,
          body: text === '' ? {} : JSON.parse(text),
        };
        received.push(call);
        void Promise.resolve(service.answer(call)).then((answer) =>
          reply(answer, response, stalled),
        );
      });
    },
  );
  // A connection with an unfinished handshake would also delay the stop.
  const connections = trackConnections(server, ['connection', 'secureConnection']);
  const url = `https://127.0.0.1:${await listenLocally(server)}`;
  const file = (name: string, text: string) => {
    const path = join(directory, name);
    writeFileSync(path, text);
    return path;
  };
  const service: WebhookService = {
    url,
    directory,
    caPem: certificates.caPem,
    leafPem: certificates.certificatePem.split(/(?<=-----END CERTIFICATE-----\n)/)[0] ?? '',
    received,
    answer: () => ({ status: 500 }),
    onGone: () => {},
    file,
    kubeconfig({ user = {}, cluster = {}, path = '/authorize' } = {}) {
      const authority = file('ca.crt', certificates.caPem);
      const body = {
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [
          {
            name: 'c',
            cluster: { server: url + path, 'certificate-authority': authority, ...cluster },
          },
        ],
        users: [{ name: 'u', user }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      };
      const count = kubeconfigs++;
      return file(`kubeconfig-${count}`, JSON.stringify(body));
    },
    async stop() {
      await connections.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  let kubeconfigs = 0;
  return service;
}

function reply(answer: Reply, response: ServerResponse, stalled: Set<ServerResponse>): void {
  if (answer === 'reset') response.socket?.destroy();
  else if (answer === 'stall') stalled.add(response);
  else if (isPlain(answer)) {
    const { status, headers = {}, text = '', end } = answer;
    response.writeHead(status, headers);
    if (end === undefined) response.end(text);
    else response.write(text, () => end === 'reset' && response.socket?.destroy());
    if (end === 'stall') stalled.add(response);
  } else {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer));
  }
}
