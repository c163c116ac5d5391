import { describe, expect, it } from 'vitest';
import { amountStep, clampSeen, timeStep, timeTicks } from './scale';

describe('axes', () => {
  it('have round steps that are far enough apart', () => {
    for (const span of [1000, 12_345, 7e6, 4.7e9, 3.6e12]) {
      const step = timeStep(span, 1000, 90);
      expect((step / span) * 1000).toBeGreaterThanOrEqual(90);
      expect((step / span) * 1000).toBeLessThanOrEqual(230);
      expect(timeTicks(0, span, step).length).toBeGreaterThan(3);
    }
    expect(timeTicks(15, 35, 10)).toEqual([20, 30]);
  });

  it('have steps of bytes that are round in KiB and MiB', () => {
    expect(amountStep(118 * 1024 * 1024, 4, true)).toBe(32 * 1024 * 1024);
    expect(amountStep(3000, 3, true)).toBe(1024);
    expect(amountStep(0, 4, true)).toBe(1);
    expect(amountStep(900, 4, false)).toBe(500);
  });

  it('show no less than a microsecond and nothing outside the trace', () => {
    expect(clampSeen(500, 501, 1e9)).toEqual([500, 1500]);
    expect(clampSeen(-50, 1e6, 1e9)).toEqual([0, 1_000_050]);
    expect(clampSeen(9e8, 2e9, 1e9)).toEqual([0, 1e9]);
    expect(clampSeen(9e8, 1.1e9, 1e9)).toEqual([8e8, 1e9]);
  });
});
