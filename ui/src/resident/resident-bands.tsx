/** Resident memory over time: classes as stacked bands. A click chooses a moment. */
import { useCallback } from 'preact/hooks';
import type { ResidentAnswer } from '../api/types';
import { Canvas, type CanvasSize } from '../canvas/canvas';
import { placeSeriesColour } from '../canvas/colours';
import { formatBytes, formatDuration } from '../format';
import { isDrawnDark, themeColour } from '../frame/theme';

const TOP_PX = 18;
const BOTTOM_PX = 18;

interface ResidentBandsProps {
  answer: ResidentAnswer;
  shown: number;
  onChoose: (moment: number) => void;
}

export function ResidentBands({ answer, shown, onChoose }: ResidentBandsProps) {
  const count = answer.rss_bytes.length;
  const timeOf = (moment: number) => answer.times_ns[moment] ?? moment;
  const [from, to] = [timeOf(0), timeOf(count - 1)];
  const share = (moment: number) => (to > from ? (timeOf(moment) - from) / (to - from) : 0);
  const most = Math.max(1, ...answer.rss_bytes);
  const draw = useCallback((context: CanvasRenderingContext2D, { widthPx, heightPx }: CanvasSize) => {
    const plotPx = heightPx - TOP_PX - BOTTOM_PX;
    const x = (moment: number) => share(moment) * widthPx;
    const y = (bytes: number) => TOP_PX + plotPx * (1 - bytes / most);
    const below = new Array<number>(count).fill(0);
    for (const band of answer.bands) {
      const above = below.map((bytes, moment) => bytes + (band.values[moment] ?? 0));
      context.fillStyle = placeSeriesColour(band.place, isDrawnDark());
      context.beginPath();
      above.forEach((bytes, moment) => context.lineTo(x(moment), y(bytes)));
      for (let moment = count - 1; moment >= 0; moment -= 1) context.lineTo(x(moment), y(below[moment] ?? 0));
      context.fill();
      above.forEach((bytes, moment) => { below[moment] = bytes; });
    }
    context.font = `${Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 0.82)}px ${themeColour('font-ui')}`;
    context.textBaseline = 'middle';
    context.fillStyle = themeColour('text-quiet') ?? '';
    context.fillText(`${formatBytes(most)} at most`, 4, TOP_PX / 2);
    context.fillText(formatDuration(from), 4, heightPx - BOTTOM_PX / 2);
    context.textAlign = 'right';
    context.fillText(formatDuration(to), widthPx - 4, heightPx - BOTTOM_PX / 2);
    context.textAlign = 'left';
    context.strokeStyle = themeColour('text') ?? '';
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x(shown), TOP_PX);
    context.lineTo(x(shown), heightPx - BOTTOM_PX);
    context.stroke();
  }, [answer, shown]);
  const nearest = (event: MouseEvent) => {
    const area = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const at = (event.clientX - area.left) / Math.max(1, area.width);
    let best = 0;
    for (let moment = 1; moment < count; moment += 1) if (Math.abs(share(moment) - at) < Math.abs(share(best) - at)) best = moment;
    return best;
  };
  return (
    <div class="resident-bands">
      <Canvas
        draw={draw} label={`Resident memory over ${count} moments. Arrow keys choose one.`} onClick={(event) => onChoose(nearest(event))}
        onKeyDown={(event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (step === undefined) return;
          event.preventDefault();
          event.stopPropagation();
          onChoose(Math.max(0, Math.min(count - 1, shown + step)));
        }}
      />
    </div>
  );
}
