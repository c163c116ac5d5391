/**
 * Sums of allocations by stack and by spans of time, in a page without a server: any range of whole
 * spans, and any frame, is counted from them as the server counts it from the events.
 */
import type { SpansAnswer } from './answers';

/** Filter that the sums answer: spans from `first` up to before `end`, and patterns of frames. */
export interface SpanFilter {
  first: number;
  end: number;
  patterns: string[];
}

/** Amounts that the sums tell, in this order. Those at the peak are of the whole time alone. */
export const TOLD = ['outstanding_bytes', 'outstanding_count', 'total_bytes', 'total_count', 'realloc_count', 'temporary_count', 'peak_bytes', 'peak_count'] as const;
const [LIVE_BYTES, LIVE_COUNT, BYTES, COUNT, REALLOCS, TEMPORARY] = [0, 1, 2, 3, 4, 5] as const;
/** Column of the bytes of temporary allocations, of flame graphs alone. */
export const TEMPORARY_BYTES = TOLD.length;

/** Amounts of stacks, as columns by stack; none of what is not known. */
export type StackAmounts = (Float64Array | undefined)[];

export class SpanSums {
  readonly answer: SpansAnswer;
  /** Starts of the spans, and the end of the last one. */
  readonly bordersNs: number[];
  private readonly stack: Int32Array;
  private readonly born: Uint16Array;
  /** Span of the free; the number of spans without one. */
  private readonly freed: Uint16Array;

  constructor(answer: SpansAnswer) {
    this.answer = answer;
    this.bordersNs = [0, ...answer.ends_ns];
    const { sums, ends_ns: ends } = answer;
    const count = sums.count.length;
    [this.stack, this.born, this.freed] = [new Int32Array(count), new Uint16Array(count), new Uint16Array(count)];
    let [stack, born] = [0, 0];
    for (let row = 0; row < count; row += 1) {
      stack += sums.stack[row] ?? 0;
      born += sums.born[row] ?? 0;
      const after = sums.freed[row] ?? -1;
      this.stack[row] = stack;
      this.born[row] = born;
      this.freed[row] = after < 0 ? ends.length : born + after;
    }
  }

  /** Returns the border that is nearest to a time. */
  nearest(ns: number): number {
    let best = 0;
    this.bordersNs.forEach((border, at) => {
      if (Math.abs(border - ns) < Math.abs((this.bordersNs[best] ?? 0) - ns)) best = at;
    });
    return best;
  }

  /** Sums by stack. */
  amounts({ first, end, patterns }: SpanFilter): StackAmounts {
    const { sums, stacks } = this.answer;
    const passes = patterns.length === 0 ? null : this.stacksWith(patterns);
    const found = [...TOLD, 'temporary_bytes'].map((name) => (name.startsWith('peak') ? undefined : new Float64Array(stacks.id.length)));
    if (first === 0 && end === this.bordersNs.length - 1) {
      const ofPeak = (column: number[]) => Float64Array.from(column, (amount, stack) => (passes === null || passes[stack] === 1 ? amount : 0));
      [found[TOLD.indexOf('peak_bytes')], found[TOLD.indexOf('peak_count')]] = [ofPeak(stacks.peak_bytes), ofPeak(stacks.peak_count)];
    }
    for (let row = 0; row < this.stack.length; row += 1) {
      const [stack, born, freed] = [this.stack[row] ?? 0, this.born[row] ?? 0, this.freed[row] ?? 0];
      if (born < first || born >= end || (passes !== null && passes[stack] === 0)) continue;
      const [count, bytes] = [sums.count[row] ?? 0, sums.bytes[row] ?? 0];
      const add = (what: number, amount: number) => {
        const column = found[what];
        if (column) column[stack] = (column[stack] ?? 0) + amount;
      };
      if (freed >= end) {
        add(LIVE_BYTES, bytes);
        add(LIVE_COUNT, count);
      }
      add(BYTES, bytes);
      add(COUNT, count);
      add(REALLOCS, sums.realloc_count[row] ?? 0);
      add(TEMPORARY, sums.temporary_count[row] ?? 0);
      add(TEMPORARY_BYTES, sums.temporary_bytes[row] ?? 0);
    }
    return found;
  }

  /** Returns live bytes and blocks at each border, of stacks with the frames. */
  course(patterns: string[]): { bytes: number[]; count: number[] } {
    const { sums } = this.answer;
    const passes = patterns.length === 0 ? null : this.stacksWith(patterns);
    const [bytes, count] = [this.bordersNs.map(() => 0), this.bordersNs.map(() => 0)];
    for (let row = 0; row < this.stack.length; row += 1) {
      if (passes !== null && passes[this.stack[row] ?? 0] === 0) continue;
      // Live at the borders behind the allocation's span, up to that before the free's.
      const [from, to] = [(this.born[row] ?? 0) + 1, Math.min(this.freed[row] ?? 0, this.bordersNs.length - 1)];
      for (let border = from; border <= to; border += 1) {
        bytes[border] = (bytes[border] ?? 0) + (sums.bytes[row] ?? 0);
        count[border] = (count[border] ?? 0) + (sums.count[row] ?? 0);
      }
    }
    return { bytes, count };
  }

  /** Returns the frames of a stack, the innermost first. */
  framesOf(stack: number): number[] {
    const { nodes, stacks } = this.answer;
    const frames: number[] = [];
    for (let node = stacks.node[stack] ?? -1; node >= 0; node = nodes.parent[node] ?? -1) frames.push(nodes.frame[node] ?? -1);
    return frames;
  }

  /** Returns 1 for each stack that has a frame of a pattern. */
  private stacksWith(patterns: string[]): Uint8Array {
    const { frames, names, nodes, stacks } = this.answer;
    const matches = frames.map((frame) => patterns.some((pattern) => isFrame(pattern, names[frame.module] ?? '', names[frame.symbol] ?? '')));
    // Parents come before their children.
    const has = new Uint8Array(nodes.parent.length);
    nodes.parent.forEach((parent, node) => {
      has[node] = matches[nodes.frame[node] ?? -1] === true || (parent >= 0 && has[parent] === 1) ? 1 : 0;
    });
    return Uint8Array.from(stacks.node, (node) => (node >= 0 ? (has[node] ?? 0) : 0));
  }
}

/** Whether a frame has a pattern `module!symbol`, `module!` or `symbol`; `*` stands for any text. */
export function isFrame(pattern: string, module: string, symbol: string): boolean {
  const at = pattern.indexOf('!');
  const [wantedModule, wantedSymbol] = at < 0 ? ['', pattern] : [pattern.slice(0, at), pattern.slice(at + 1)];
  const file = module.slice(module.lastIndexOf('/') + 1);
  const names = [module, file, file.replace(/\.so(\.[\d.]+)?$/, '.so'), file.replace(/\.so(\.[\d.]+)?$/, '')];
  if (wantedModule !== '' && !names.some((name) => isText(wantedModule, name))) return false;
  return wantedSymbol === '' || isText(wantedSymbol, symbol) || isText(wantedSymbol, symbol.replace(/\(.*$/s, ''));
}

function isText(pattern: string, text: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 'is').test(text);
}
