import { accessSync, constants } from 'node:fs';
import { isObject, type JsonObject, member } from '@wheelhouse/machinery';
import { execConfigErrors, readExecConfig } from '../credentials/exec-config.ts';
import { textMember } from './kubeconfig.ts';

/** What is wrong with a user's entry, flags included, in upstream's words; its paths are absolute. */
export function userFaults(name: string, user: JsonObject): string[] {
  const has = (key: string): boolean => textMember(user, key) !== undefined;
  const faults = certificateFaults(name, user);
  if (isObject(user.exec)) {
    if (isObject(user['auth-provider'])) {
      faults.push(`authProvider cannot be provided in combination with an exec plugin for ${name}`);
    }
    faults.push(...execConfigErrors(readExecConfig(user.exec), name));
  }
  if (has('token') && (has('username') || has('password'))) {
    faults.push(
      `more than one authentication method found for ${name}; ` +
        'found [token basicAuth], only one is allowed',
    );
  }
  const extra = member(user, 'as-user-extra');
  const groups = member(user, 'as-groups');
  const more =
    has('as-uid') ||
    (Array.isArray(groups) && groups.length > 0) ||
    (isObject(extra) && Object.keys(extra).length > 0);
  if (more && !has('as')) {
    faults.push(`requesting uid, groups or user-extra for ${name} without impersonating a user`);
  }
  return faults;
}

function certificateFaults(name: string, user: JsonObject): string[] {
  const file = textMember(user, 'client-certificate');
  const data = textMember(user, 'client-certificate-data');
  const keyFile = textMember(user, 'client-key');
  const keyData = textMember(user, 'client-key-data');
  if (file === undefined && data === undefined) return [];
  const faults: string[] = [];
  if (file !== undefined && data !== undefined) {
    faults.push(
      `client-cert-data and client-cert are both specified for ${name}. ` +
        'client-cert-data will override.',
    );
  }
  if (keyFile !== undefined && keyData !== undefined) {
    faults.push(
      `client-key-data and client-key are both specified for ${name}; ` +
        'client-key-data will override',
    );
  }
  if (keyFile === undefined && keyData === undefined) {
    faults.push(
      `client-key-data or client-key must be specified for ${name} ` +
        'to use the clientCert authentication method.',
    );
  }
  faults.push(...unreadable(file, { what: 'client-cert', name }));
  faults.push(...unreadable(keyFile, { what: 'client-key', name }));
  return faults;
}

/** What is wrong with a cluster's entry, as `userFaults`. */
export function clusterFaults(name: string, cluster: JsonObject): string[] {
  const faults: string[] = [];
  const proxyUrl = textMember(cluster, 'proxy-url');
  const why = proxyUrl === undefined ? undefined : proxyUrlFault(proxyUrl);
  if (why !== undefined) {
    const shown = JSON.stringify(proxyUrl);
    faults.push(`invalid 'proxy-url' ${shown} for cluster ${JSON.stringify(name)}: ${why}`);
  }
  const file = textMember(cluster, 'certificate-authority');
  if (file !== undefined && textMember(cluster, 'certificate-authority-data') !== undefined) {
    faults.push(
      `certificate-authority-data and certificate-authority are both specified for ${name}. ` +
        'certificate-authority-data will override.',
    );
  }
  faults.push(...unreadable(file, { what: 'certificate-authority', name }));
  return faults;
}

function proxyUrlFault(proxyUrl: string): string | undefined {
  const url = URL.canParse(proxyUrl) ? new URL(proxyUrl) : undefined;
  const scheme = url?.protocol.slice(0, -1) ?? '';
  if (['http', 'https', 'socks5'].includes(scheme)) return undefined;
  return `unsupported scheme ${JSON.stringify(scheme)}, must be http, https, or socks5`;
}

function unreadable(
  file: string | undefined,
  { what, name }: { what: string; name: string },
): string[] {
  if (file === undefined) return [];
  try {
    accessSync(file, constants.R_OK);
    return [];
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'no such file or directory' : message;
    return [`unable to read ${what} ${file} for ${name} due to open ${file}: ${why}`];
  }
}
