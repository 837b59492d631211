import { pause, problemText } from '@wheelhouse/machinery';
import { answerHeaders } from '../answer/respond.ts';
import type { ProfileKind } from '../observe/profiles.ts';
import type { AuthorizedCall } from './call.ts';

/** Available profiles, with their default duration in seconds. */
const profiles: ReadonlyMap<string, { readonly kind: ProfileKind; readonly seconds: number }> =
  new Map([
    ['allocs', { kind: 'allocs', seconds: 10 }],
    ['heap', { kind: 'heap', seconds: 10 }],
    ['profile', { kind: 'profile', seconds: 30 }],
  ]);
/**
 * Maximum duration of a profile in seconds; longer profiles would keep too many samples in memory.
 */
const secondsMax = 600;
/** The highest log verbosity. */
const verbosityMax = 2 ** 31 - 1;
const flagBytesMax = 64 * 1024;

/**
 * Answers paths below `/debug/pprof` and `/debug/flags` if `--profiling` is on. Resolves with false
 * for other paths.
 */
export async function debugEndpoint(call: AuthorizedCall): Promise<boolean> {
  const { context, info } = call;
  if (context.profiling === 'off') return false;
  const [, , area, name, ...rest] = info.path.split('/');
  if (area === 'pprof') {
    if (name === undefined) redirectToIndex(call);
    else if (name === '') sendPage(call, profileIndex);
    else await sendProfile(call, rest.length === 0 ? name : '');
    return true;
  }
  if (area !== 'flags') return false;
  if (name === 'v' && rest.length === 0) await setVerbosity(call);
  else sendPage(call, flagIndex);
  return true;
}

const profileIndex = `<html>
<head><title>/debug/pprof/</title></head>
<body>
<h1>/debug/pprof/</h1>
<ul>
<li><a href="profile">profile</a>: where the processor's time goes, for <code>seconds</code> (30)</li>
<li><a href="heap">heap</a>: what is allocated within <code>seconds</code> (10) and still in use at
their end; <code>gc=1</code> collects garbage first</li>
<li><a href="allocs">allocs</a>: what is allocated within <code>seconds</code> (10)</li>
</ul>
<p>Profiles are in the pprof format: <code>go tool pprof</code> reads them.</p>
</body>
</html>
`;

const flagIndex = `<html>
<head><title>/debug/flags/</title></head>
<body>
<h1>/debug/flags/</h1>
<ul>
<li>v: PUT sets the verbosity of the log</li>
</ul>
</body>
</html>
`;

function sendPage(call: AuthorizedCall, page: string): void {
  const headers = answerHeaders(call, 'text/html; charset=utf-8');
  headers['x-content-type-options'] = 'nosniff';
  call.exchange.send({ status: 200, headers, body: Buffer.from(page) });
}

function redirectToIndex(call: AuthorizedCall): void {
  const headers = answerHeaders(call, 'text/html; charset=utf-8');
  headers['location'] = '/debug/pprof/';
  const body = Buffer.from('<a href="/debug/pprof/">Found</a>.\n\n');
  call.exchange.send({ status: 302, headers, body });
}

function sendText(call: AuthorizedCall, answer: { status: number; type: string; text: string }) {
  const headers = answerHeaders(call, answer.type);
  headers['x-content-type-options'] = 'nosniff';
  call.exchange.send({ status: answer.status, headers, body: Buffer.from(`${answer.text}\n`) });
}

function refuseProfile(call: AuthorizedCall, status: number, text: string): void {
  const headers = answerHeaders(call, 'text/plain; charset=utf-8');
  headers['x-content-type-options'] = 'nosniff';
  headers['x-go-pprof'] = '1';
  call.exchange.send({ status, headers, body: Buffer.from(`${text}\n`) });
}

async function sendProfile(call: AuthorizedCall, name: string): Promise<void> {
  const { context, exchange, info } = call;
  const profile = profiles.get(name);
  if (profile === undefined) return refuseProfile(call, 404, 'Unknown profile');
  const { kind } = profile;
  if (Number(info.query.get('debug') ?? '0') > 0) {
    return refuseProfile(call, 400, 'profiles are served in the pprof format alone, without debug');
  }
  const seconds = secondsOf(info.query.get('seconds') ?? '', profile);
  if (seconds === undefined) {
    const rule = `must be a positive integer, at most ${secondsMax}`;
    return refuseProfile(call, 400, `invalid value for "seconds" - ${rule}`);
  }
  const { takeProfile, ProfileInUse } = await import('../observe/profiles.ts');
  const gone = new AbortController();
  exchange.onAbort(() => gone.abort());
  const { signal } = gone;
  const collect = Number(info.query.get('gc') ?? '0') > 0;
  try {
    const during = () => pause(context.clock, { ms: seconds * 1000, signal, where: 'endpoint' });
    const body = await takeProfile(kind, during, { collect, clock: context.clock });
    const headers = answerHeaders(call, 'application/octet-stream');
    headers['content-disposition'] = `attachment; filename="${name}"`;
    headers['x-content-type-options'] = 'nosniff';
    exchange.send({ status: 200, headers, body });
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof ProfileInUse)) throw error;
    refuseProfile(call, 500, `Could not enable profiling: another profile is being taken`);
  }
}

/** The requested seconds of a profile; undefined if they are invalid. */
function secondsOf(
  text: string,
  { kind, seconds }: { readonly kind: ProfileKind; readonly seconds: number },
): number | undefined {
  if (text === '') return seconds;
  const number = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  // For the CPU profile a malformed duration means the default, as in Go.
  if (kind === 'profile' && !(number > 0)) return seconds;
  return number > 0 && number <= secondsMax ? number : undefined;
}

/** PUT sets the log verbosity until the server exits; other methods are not allowed. */
async function setVerbosity(call: AuthorizedCall): Promise<void> {
  const { context, exchange, info } = call;
  const answer = (status: number, text: string) =>
    sendText(call, { status, type: 'text/plain', text });
  if (info.verb !== 'put') return answer(406, 'unsupported http method');
  const text = (await exchange.body(flagBytesMax)).toString();
  const refuse = (problem: 'syntax' | 'range') =>
    answer(400, problemText({ code: 'number', parser: 'ParseUint', text, problem }));
  if (!/^\d+$/.test(text)) return refuse('syntax');
  if (Number(text) > verbosityMax) return refuse('range');
  const { setVerbosity: set } = context.logger;
  if (set === undefined) return answer(400, 'the log of this server has one verbosity');
  set(Number(text));
  answer(200, `successfully set klog.logging.verbosity to ${Number(text)}`);
}
