// Views that are closed stay in the event of a bus that lives on. Each line on the input is a step.
using System;

namespace Desk
{
    class Bus
    {
        public static readonly Bus Main = new Bus();
        public event EventHandler Resized;
        public void Resize() { if (Resized != null) Resized(this, EventArgs.Empty); }
    }

    class View
    {
        public int[] Pixels = new int[64];
        public void OnResized(object sender, EventArgs arguments) { Pixels[0]++; }
        public void Open() { Bus.Main.Resized += OnResized; }
    }

    static class Handlers
    {
        static void Step() { for (int i = 0; i < 1000; i++) new View().Open(); Bus.Main.Resize(); }

        static void Main()
        {
            Step();
            Console.WriteLine("READY");
            while (Console.ReadLine() != null) { Step(); Console.WriteLine("DONE"); }
        }
    }
}
