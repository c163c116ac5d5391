/** Button that opens a small box below it; a click elsewhere or Escape closes it. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

interface PopoverProps {
  label: ComponentChildren;
  title: string;
  children: ComponentChildren;
  side?: 'left' | 'right';
  class?: string;
}

export function Popover({ label, title, children, side = 'right', class: className = '' }: PopoverProps) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const onDown = (event: MouseEvent) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      setOpen(false);
      button.current?.focus();
    };
    document.addEventListener('mousedown', onDown);
    document.addEventListener('keydown', onKey, true);
    box.current?.querySelector<HTMLElement>('.popover-box input, .popover-box button, .popover-box select')?.focus();
    return () => {
      document.removeEventListener('mousedown', onDown);
      document.removeEventListener('keydown', onKey, true);
    };
  }, [isOpen]);
  return (
    <div ref={box} class={`popover ${className}`}>
      <button ref={button} type="button" class="button" title={title} aria-haspopup="true" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {label}
        <span class="caret" aria-hidden="true" />
      </button>
      {isOpen && <div class={`popover-box is-${side}`} role="group" aria-label={title}>{children}</div>}
    </div>
  );
}
