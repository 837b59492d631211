import http from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { trustIn, verdict } from '@wheelhouse/machinery';
import type { Credential } from './credentials/credential.ts';
import type { ClientConfig } from './kubeconfig/client-config.ts';
import { SharedConnection } from './shared-connection.ts';
import { SecureTunnelAgent, TunnelAgent } from './tunnel.ts';

/** How requests reach a server. */
export interface Route {
  readonly agent: http.Agent;
  /** Asked before the agent for the one connection that all requests may share. */
  readonly shared?: SharedConnection | undefined;
}

/** The kept-alive connections of a client, all under one client certificate at a time. */
export interface Connections {
  /** The route of a request with this credential; another certificate ends the old connections. */
  routeFor(credential: Credential | undefined): Route;
  close(): void;
}

/** Makes the connections' keeper; opens none. */
export function createConnections(config: ClientConfig, secure: boolean): Connections {
  if (!secure) {
    const agent =
      config.proxyUrl === undefined
        ? new http.Agent({ keepAlive: true })
        : new TunnelAgent(config.proxyUrl);
    return { routeFor: () => ({ agent }), close: () => agent.destroy() };
  }
  const fixed = { certificatePem: config.certificatePem, keyPem: config.keyPem };
  let shown: Credential = fixed;
  let route: (Route & { readonly close: () => void }) | undefined;
  const drop = (): void => {
    route?.close();
    route = undefined;
  };
  const ignoreChanges = config.credentials?.onCertificateChange(drop);
  return {
    routeFor(credential) {
      const wanted = credential?.certificatePem === undefined ? fixed : credential;
      // A connection keeps the certificate it began with, so another one needs a new handshake.
      if (wanted.certificatePem !== shown.certificatePem || wanted.keyPem !== shown.keyPem) drop();
      shown = wanted;
      route ??= secureRoute(config, wanted);
      return route;
    },
    close() {
      ignoreChanges?.();
      drop();
    },
  };
}

function secureRoute(
  config: ClientConfig,
  shown: Credential,
): Route & { readonly close: () => void } {
  const { proxyUrl, protocol } = config;
  const options = { keepAlive: true, ...tlsOptions(config, shown) };
  if (protocol === 'negotiated' && proxyUrl === undefined) {
    const shared = new SharedConnection(new URL(config.server), options);
    return { agent: shared.agent, shared, close: () => shared.close() };
  }
  const agent =
    proxyUrl === undefined ? new https.Agent(options) : new SecureTunnelAgent(proxyUrl, options);
  return { agent, close: () => agent.destroy() };
}

function tlsOptions(config: ClientConfig, shown: Credential): https.AgentOptions {
  return {
    ...trustIn(config.caPem),
    ...(shown.certificatePem === undefined ? {} : { cert: shown.certificatePem }),
    ...(shown.keyPem === undefined ? {} : { key: shown.keyPem }),
    ...(config.tlsServerName === undefined ? {} : nameToCheck(config.tlsServerName)),
    ...(config.insecureSkipTlsVerify === true ? { rejectUnauthorized: false } : {}),
  };
}

/** An address cannot be asked for in the handshake, only compared with the certificate. */
function nameToCheck(name: string): https.AgentOptions {
  if (isIP(name) === 0) return { servername: name };
  const check = (_host: string, certificate: PeerCertificate) =>
    checkServerIdentity(name, certificate);
  return { checkServerIdentity: verdict(check) };
}
