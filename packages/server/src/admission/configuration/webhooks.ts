import { isAbsolute } from 'node:path';
import {
  type ConfigurationFormat,
  decodeConfiguration,
  structType,
  textType,
} from '@wheelhouse/codec';
import { type Dialect, invalid, member } from '@wheelhouse/machinery';
import { refuse, textOf } from './file.ts';

const configurationType = structType('WebhookAdmissionConfiguration', {
  kubeConfigFile: textType,
});

export const webhookAdmissionFormat = {
  kind: 'WebhookAdmissionConfiguration',
  group: 'apiserver.config',
  versions: { v1: configurationType },
} as const satisfies ConfigurationFormat;

/**
 * Reads the configuration of the plugins that call webhooks: the path of a kubeconfig with who this
 * server is to them; undefined where it names none. Rejects with ConfigurationError.
 */
export async function readWebhookKubeconfig(
  text: string,
  dialect: Dialect,
): Promise<string | undefined> {
  const group = dialect.group('apiserver.config');
  const isOlder = text.includes(`${group}/v1alpha1`);
  const older = { kind: 'WebhookAdmission', versions: { v1alpha1: configurationType } };
  const format = isOlder ? older : webhookAdmissionFormat;
  const { object } = await decodeConfiguration(text, { ...format, group });
  const path = textOf(member(object, 'kubeConfigFile'));
  if (path === '') return undefined;
  if (!isAbsolute(path)) refuse([invalid('kubeConfigFile', path, 'must be an absolute file path')]);
  return path;
}
