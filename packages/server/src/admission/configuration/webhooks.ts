import { isAbsolute } from 'node:path';
import { decodeConfiguration, structType, textType } from '@wheelhouse/codec';
import { type Dialect, invalid, member } from '@wheelhouse/machinery';
import { refuse, textOf } from './file.ts';

const configurationType = structType('WebhookAdmissionConfiguration', {
  kubeConfigFile: textType,
});

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
  const { object } = await decodeConfiguration(text, {
    kind: isOlder ? 'WebhookAdmission' : 'WebhookAdmissionConfiguration',
    group,
    versions: isOlder ? { v1alpha1: configurationType } : { v1: configurationType },
  });
  const path = textOf(member(object, 'kubeConfigFile'));
  if (path === '') return undefined;
  if (!isAbsolute(path)) refuse([invalid('kubeConfigFile', path, 'must be an absolute file path')]);
  return path;
}
