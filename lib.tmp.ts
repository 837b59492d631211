import { openSync, readSync } from 'node:fs';

const statistics = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
const buffer = Buffer.alloc(64);
export function cpuMs() {
  process.cpuUsage();
  const n = readSync(statistics, buffer, 0, 64, 0);
  return Number.parseInt(buffer.toString('latin1', 0, n), 10) / 1e6;
}
const line = (name: string, all: number[], more = '') => {
  const [first, ...later] = all;
  later.sort((a, b) => a - b);
  console.log(
    `${name.padEnd(60)} first ${first!.toFixed(1)}  median ${later[later.length >> 1]!.toFixed(1)} max ${later.at(-1)!.toFixed(1)}${more}`,
  );
};
export function measure(name: string, make: () => any, f: (x: any) => unknown, n = 7) {
  const all: number[] = [];
  try {
    for (let i = 0; i < n; i += 1) {
      const x = make();
      const a = cpuMs();
      f(x);
      all.push(cpuMs() - a);
    }
  } catch (e) {
    console.log(name, String(e).slice(0, 300));
    return;
  }
  line(name, all);
}
export function longest(name: string, make: () => Iterator<void, unknown>, n = 7) {
  const all: number[] = [];
  let steps = 0;
  let total = 0;
  try {
    for (let i = 0; i < n; i += 1) {
      const x = make();
      let max = 0;
      steps = 0;
      total = 0;
      for (;;) {
        const a = cpuMs();
        const s = x.next();
        const d = cpuMs() - a;
        max = Math.max(max, d);
        total += d;
        steps += 1;
        if (s.done) break;
      }
      all.push(max);
    }
  } catch (e) {
    console.log(name, String(e).slice(0, 300));
    return;
  }
  line(name, all, ` of ${steps} steps, ${total.toFixed(1)}`);
}
export const rep = <T>(n: number, f: (i: number) => T) => Array.from({ length: n }, (_, i) => f(i));
export const fresh = (o: any) => {
  const t = JSON.stringify(o);
  return () => JSON.parse(t);
};
