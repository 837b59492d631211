import {
  type ClientConfig,
  type Kubeconfig,
  loadKubeconfig,
  resolveContext,
  textMember,
} from '@wheelhouse/client';

/** Who this server is to a webhook's host, `host:port`; nobody when undefined. */
export type WebhookCredentials = (host: string) => Partial<ClientConfig> | undefined;

/**
 * Who this server is to admission webhooks, by a kubeconfig whose users are named after hosts (ADM-2):
 * `name.namespace.svc:8443`, without a port for 443, `*.namespace.svc` and `*` for many, and else the
 * user of the current context. Rejects, naming the file, when it cannot be used.
 */
export async function readWebhookCredentials(file: string): Promise<WebhookCredentials> {
  const config = await loadKubeconfig({ files: [file], required: true }).catch((error: Error) => {
    throw new Error(`webhook kubeconfig ${file}: ${error.message}`);
  });
  const credentialsByUser = new Map<string, Partial<ClientConfig>>();
  return (host) => {
    const user = userFor(config, host);
    if (user === undefined) return undefined;
    const credentials = credentialsByUser.get(user) ?? credentialsOf(config, user);
    credentialsByUser.set(user, credentials);
    return credentials;
  };
}

function userFor(config: Kubeconfig, host: string): string | undefined {
  const bare = host.endsWith(':443') ? [host.slice(0, -':443'.length)] : [];
  const names = [host, ...bare].flatMap((one) => [one, ...wildcards(one)]);
  const named = [...names, '*'].find((name) => config.users.has(name));
  if (named !== undefined) return named;
  const context = config.contexts.get(config.currentContext)?.body;
  const user = context === undefined ? undefined : textMember(context, 'user');
  return user !== undefined && config.users.has(user) ? user : undefined;
}

/** `*.b.c` and `*.c` for `a.b.c`. */
function wildcards(host: string): string[] {
  const steps = host.split('.');
  return steps.slice(1).map((_, index) => `*.${steps.slice(index + 1).join('.')}`);
}

/** What of a user goes with a call; where to and whom to trust is the webhook's own to say. */
function credentialsOf(config: Kubeconfig, user: string): Partial<ClientConfig> {
  const { client } = resolveContext(
    { ...config, currentContext: '' },
    { user, server: 'https://webhook.invalid' },
  );
  const { certificatePem, keyPem, token, basicAuth, credentials, impersonate } = client;
  return { certificatePem, keyPem, token, basicAuth, credentials, impersonate };
}
