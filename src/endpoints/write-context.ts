import type { WriteContext } from '../registry/contract.ts';
import type { WriteOptions } from '../request/options.ts';
import type { ApiCall } from './call.ts';

/** What the registry needs to know of a writing request besides its object. */
export function writeContext(
  call: ApiCall,
  options: Pick<WriteOptions, 'dryRun' | 'fieldManager'>,
): WriteContext {
  const { context, exchange, deadlineMs } = call;
  return {
    user: call.user,
    dryRun: options.dryRun,
    fieldManager: options.fieldManager ?? managerFromUserAgent(exchange.header('user-agent')),
    warn: (text) => {
      if (!call.warnings.includes(text)) call.warnings.push(text);
    },
    expired: () => exchange.aborted || context.clock.monotonic() > deadlineMs,
  };
}

const managerLengthMax = 128;

/** The User-Agent up to its first `/` (MF-2), cut to what a manager name may be. */
function managerFromUserAgent(userAgent: string | undefined): string {
  const name = (userAgent ?? '').split('/', 1)[0] ?? '';
  const printable = Array.from(name).filter((one) => one >= ' ' && one !== '\u007f');
  const kept = printable.slice(0, managerLengthMax).join('');
  return kept === '' ? 'unknown' : kept;
}

/** Behind a PUT or an apply that would create: the user must be allowed to (API-5, SSA-7). */
export async function authorizeCreate(call: ApiCall): Promise<void> {
  await call.context.authorize(call.user, call.info, 'create');
}
