import type { Clock, Dialect, MetricRegistry } from '@wheelhouse/machinery';
import type { ObjectReader } from '../../admission/tools.ts';
import type { WebhookPort } from '../../admission/webhooks/port.ts';
import type { WebhookCredentials } from './admission-webhooks.ts';

/** What calls webhooks, loaded with the first call. */
export function lazyWebhooks(parts: {
  readonly clock: Clock;
  readonly dialect: Dialect;
  readonly objects: ObjectReader;
  readonly credentials?: WebhookCredentials | undefined;
  readonly registry: MetricRegistry;
}): WebhookPort {
  const load = async (): Promise<WebhookPort> => {
    const [{ createAdmissionWebhooks }, { createServiceResolver }, { clientMeter }] =
      await Promise.all([
        import('./admission-webhooks.ts'),
        import('../services/service-address.ts'),
        import('../webhooks/client-metrics.ts'),
      ]);
    const resolve = createServiceResolver(parts);
    const meter = clientMeter(parts.registry, parts.clock);
    return createAdmissionWebhooks({ ...parts, resolve, meter });
  };
  let loading: Promise<WebhookPort> | undefined;
  return {
    async post(request) {
      loading ??= load();
      return (await loading).post(request);
    },
  };
}
