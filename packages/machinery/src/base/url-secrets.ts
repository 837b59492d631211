/** Query parameters whose values are credentials, in lower case. */
const secretNames: ReadonlySet<string> = new Set([
  'access_token',
  'api_key',
  'apikey',
  'assertion',
  'authorization',
  'client_secret',
  'id_token',
  'password',
  'refresh_token',
  'secret',
  'token',
]);

const replacement = 'REDACTED';

/**
 * A request's path and query for logs and records: values of query parameters that carry
 * credentials are replaced. A name that cannot be decoded counts as one of a credential.
 */
export function withoutSecrets(url: string): string {
  const at = url.indexOf('?');
  if (at < 0) return url;
  const query = url.slice(at + 1);
  const shown = query.split('&').map(shownParameter).join('&');
  return shown === query ? url : `${url.slice(0, at)}?${shown}`;
}

function shownParameter(parameter: string): string {
  const at = parameter.indexOf('=');
  if (at < 0) return parameter;
  const name = parameter.slice(0, at);
  return isSecret(name) ? `${name}=${replacement}` : parameter;
}

function isSecret(name: string): boolean {
  try {
    return secretNames.has(decodeURIComponent(name.replaceAll('+', ' ')).trim().toLowerCase());
  } catch {
    return true;
  }
}
