import http from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { trustIn, verdict } from '@wheelhouse/machinery';
import type { Credential } from './credentials/credential.ts';
import type { ClientConfig } from './kubeconfig/client-config.ts';
import { SecureTunnelAgent, TunnelAgent } from './tunnel.ts';

/** The kept-alive connections of a client, all under one client certificate at a time. */
export interface Connections {
  /** The agent for a request with this credential; another certificate ends the old connections. */
  agentFor(credential: Credential | undefined): http.Agent;
  close(): void;
}

/** Makes the connections' keeper; opens none. */
export function createConnections(config: ClientConfig, secure: boolean): Connections {
  if (!secure) {
    const agent =
      config.proxyUrl === undefined
        ? new http.Agent({ keepAlive: true })
        : new TunnelAgent(config.proxyUrl);
    return { agentFor: () => agent, close: () => agent.destroy() };
  }
  const fixed = { certificatePem: config.certificatePem, keyPem: config.keyPem };
  let shown: Credential = fixed;
  let agent: https.Agent | undefined;
  const drop = (): void => {
    agent?.destroy();
    agent = undefined;
  };
  const ignoreChanges = config.credentials?.onCertificateChange(drop);
  return {
    agentFor(credential) {
      const wanted = credential?.certificatePem === undefined ? fixed : credential;
      // A connection keeps the certificate it began with, so another one needs a new handshake.
      if (wanted.certificatePem !== shown.certificatePem || wanted.keyPem !== shown.keyPem) drop();
      shown = wanted;
      agent ??= secureAgent(config, wanted);
      return agent;
    },
    close() {
      ignoreChanges?.();
      drop();
    },
  };
}

function secureAgent(config: ClientConfig, shown: Credential): https.Agent {
  const options = { keepAlive: true, ...tlsOptions(config, shown) };
  return config.proxyUrl === undefined
    ? new https.Agent(options)
    : new SecureTunnelAgent(config.proxyUrl, options);
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
