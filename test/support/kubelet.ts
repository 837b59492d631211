import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { systemClock } from '@wheelhouse/machinery';
import { ensureServingCertificates } from '@wheelhouse/server/testing';
import { listenLocally, trackConnections } from './local-server.ts';

/** A fake kubelet: a server over TLS on the loopback interface whose answers a test determines. */
export interface PlayedKubelet {
  readonly port: number;
  /** The CA of its certificate, in PEM. */
  readonly caPem: string;
  /** Its certificate and key, which can also identify a client. */
  readonly pair: { readonly certificatePem: string; readonly keyPem: string };
  /** The received requests, such as `GET /containerLogs/default/p/c?follow=true`. */
  readonly requests: string[];
  /** The headers of the last request. */
  readonly headers: IncomingMessage['headers'];
  /** The SHA-256 fingerprint of the last client certificate; empty for a client without one. */
  readonly clientFingerprint: string;
  answer: (request: IncomingMessage, response: ServerResponse) => void;
  upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  stop(): Promise<void>;
}

/** Starts a kubelet whose certificate is for 127.0.0.1. */
export async function startKubelet(): Promise<PlayedKubelet> {
  const certDir = mkdtempSync(join(tmpdir(), 'wheelhouse-kubelet-'));
  const made = ensureServingCertificates({ certDir, hosts: ['127.0.0.1'], clock: systemClock });
  const requests: string[] = [];
  let headers: IncomingMessage['headers'] = {};
  let clientFingerprint = '';
  const record = (request: IncomingMessage) => {
    requests.push(`${request.method} ${request.url}`);
    ({ headers } = request);
  };
  const server = https.createServer({
    cert: made.certificatePem,
    key: made.keyPem,
    requestCert: true,
    rejectUnauthorized: false,
  });
  const connections = trackConnections(server, ['secureConnection']);
  server.on('secureConnection', (socket) => {
    clientFingerprint = socket.getPeerCertificate().fingerprint256 ?? '';
  });
  server.on('request', (request, response) => {
    record(request);
    kubelet.answer(request, response);
  });
  server.on('upgrade', (request, socket, head) => {
    record(request);
    socket.on('error', () => {});
    kubelet.upgrade(request, socket, head);
  });
  const port = await listenLocally(server);
  const kubelet: PlayedKubelet = {
    port,
    caPem: made.caPem,
    pair: made,
    requests,
    get headers() {
      return headers;
    },
    get clientFingerprint() {
      return clientFingerprint;
    },
    answer: (_, response) => void response.end('a line\n'),
    upgrade: (_, socket) => void socket.destroy(),
    async stop() {
      await connections.stop();
      rmSync(certDir, { recursive: true, force: true });
    },
  };
  return kubelet;
}
